// Packages that are installed beside this file are taken from here, wherever they are imported from: node --import=…/pin.mjs
import { readFileSync } from 'node:fs';
import Module, { createRequire, register } from 'node:module';

const manifest = new URL('package.json', import.meta.url);
const names = Object.keys(JSON.parse(readFileSync(manifest, 'utf8')).dependencies ?? {});
const isPinned = (wanted) => names.some((name) => wanted === name || wanted.startsWith(`${name}/`));

const own = createRequire(import.meta.url);
const resolveFilename = Module._resolveFilename;
Module._resolveFilename = function resolve(wanted, parent, ...rest) {
  if (!isPinned(wanted) || parent?.filename?.startsWith(import.meta.dirname))
    return resolveFilename.call(this, wanted, parent, ...rest);
  return own.resolve(wanted);
};

const loader = `
const names = ${JSON.stringify(names)};
const here = ${JSON.stringify(import.meta.url)};
const folder = new URL('.', here).href;
export function resolve(wanted, context, next) {
  const isPinned = names.some((name) => wanted === name || wanted.startsWith(name + '/'));
  const isInside = context.parentURL?.startsWith(folder);
  return next(wanted, isPinned && !isInside ? { ...context, parentURL: here } : context);
}
`;
if (names.length > 0) register(`data:text/javascript,${encodeURIComponent(loader)}`);
