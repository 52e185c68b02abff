/** For Node without `module.registerHooks`: loads modules through the agent's rewriting, in the loader's thread. */
import { fileURLToPath } from 'node:url';
import { marked } from './agent.mjs';

export async function load(url, context, next) {
  const loaded = await next(url, context);
  if (loaded.format !== 'module' || !url.startsWith('file:')) return loaded;
  const text = marked(fileURLToPath(url), Buffer.from(loaded.source).toString());
  return text === null ? loaded : { ...loaded, source: text };
}
