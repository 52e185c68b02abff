/**
 * Runs a script with some functions of the modules it imports serialised, or replaced by ones that answer at once.
 *
 * Run: node patched.mjs '{"serialize": ["file:///app.mjs#add"], "mock": {"package#other": null}}' script.mjs
 */
import { AsyncLocalStorage } from 'node:async_hooks';
import Module, { register } from 'node:module';
import { resolve } from 'node:path';
import { argv, stderr } from 'node:process';
import { pathToFileURL } from 'node:url';

const [, , text, script] = argv;
const spec = JSON.parse(text);
/** By module, which is a file's URL or a package's name: by path inside it, what becomes of the function. */
const wanted = new Map();
for (const target of spec.serialize ?? []) want(target, serialised);
for (const [target, value] of Object.entries(spec.mock ?? {}))
  want(target, (found) => answering(found, value));
const missing = new Set(
  [...wanted].flatMap(([module, paths]) => [...paths.keys()].map((path) => `${module}#${path}`)),
);

function want(target, change) {
  const at = target.lastIndexOf('#');
  const module = target.slice(0, at);
  const paths = wanted.get(module) ?? new Map();
  wanted.set(module, paths.set(target.slice(at + 1), change));
}

/** The same function, one call at a time; a call from within itself goes through. */
function serialised(found) {
  const inside = new AsyncLocalStorage();
  let last = null;
  const follow = (promise) => {
    last = promise;
    const end = () => {
      if (last === promise) last = null;
    };
    promise.then(end, end);
    return promise;
  };
  return function oneAtATime(...args) {
    const call = () => inside.run(true, () => found.apply(this, args));
    if (inside.getStore() === true) return call();
    if (last !== null) return follow(last.then(call, call));
    const result = call();
    return typeof result?.then === 'function' ? follow(Promise.resolve(result)) : result;
  };
}

/** A function that gives `value` at once, as a promise where the real one is declared to. */
function answering(found, value) {
  const isAsync = Object.getPrototypeOf(found) === Object.getPrototypeOf(async () => {});
  return isAsync ? async () => value : () => value;
}

/** The changed function of a module; what lies deeper, a method of a class for instance, is changed where it is. */
function changed(own, module, path) {
  const steps = path.split('.');
  const last = steps.pop();
  let owner = own;
  for (const step of steps) owner = owner?.[step];
  if (typeof owner?.prototype?.[last] === 'function') owner = owner.prototype;
  const found = owner?.[last];
  if (typeof found !== 'function') return found;
  missing.delete(`${module}#${path}`);
  const made = wanted.get(module).get(path)(found);
  if (steps.length > 0 || !isNamespace(own)) owner[last] = made;
  return made;
}

const isNamespace = (own) => own[Symbol.toStringTag] === 'Module';
const KEY = 'tracewright.patched';
globalThis[Symbol.for(KEY)] = changed;

/** What a script imports is a module of ours that passes everything on but the changed functions. */
const loader = `
const wanted = new Map(${JSON.stringify([...wanted].map(([module, paths]) => [module, [...paths.keys()]]))});
const MARK = 'tracewright-patched';
export async function resolve(name, context, next) {
  const found = await next(name, context);
  const module = wanted.has(name) ? name : found.url;
  if (!wanted.has(module) || context.parentURL?.includes(MARK)) return found;
  return { ...found, url: found.url + '?' + MARK + '=' + encodeURIComponent(module), format: 'module', shortCircuit: true };
}
export async function load(url, context, next) {
  const [original, mark] = url.split('?' + MARK + '=');
  if (mark === undefined) return next(url, context);
  const module = decodeURIComponent(mark);
  const { format, source } = await next(original, { ...context, format: undefined });
  const quoted = JSON.stringify(original);
  const isModule = format?.startsWith('module') === true;
  const hasDefault = !isModule || /\\bexport\\s+default\\b|\\bas\\s+default\\b/.test(String(source));
  const names = wanted.get(module).filter((path) => !path.includes('.'));
  const others = wanted.get(module).filter((path) => path.includes('.'));
  const lines = [
    'import * as all from ' + quoted + ';',
    'export * from ' + quoted + ';',
    'const own = ' + (isModule ? 'all' : 'all.default ?? all') + ';',
    'const changed = globalThis[Symbol.for(' + JSON.stringify('${KEY}') + ')];',
    ...others.map((path) => 'changed(own, ' + JSON.stringify(module) + ', ' + JSON.stringify(path) + ');'),
    ...names.map((name, at) => 'const made' + at + ' = changed(own, ' + JSON.stringify(module) + ', ' + JSON.stringify(name) + '); export { made' + at + ' as ' + name + ' };'),
    ...(hasDefault && !names.includes('default') ? ['export default all.default;'] : []),
  ];
  return { format: 'module', source: lines.join('\\n'), shortCircuit: true };
}
`;
register(`data:text/javascript,${encodeURIComponent(loader)}`);

const load = Module._load;
const patched = new WeakSet();
Module._load = function loadPatched(name, parent, ...rest) {
  const own = load.call(this, name, parent, ...rest);
  if (Module.isBuiltin(name)) return own;
  const path = Module._resolveFilename(name, parent);
  const module = wanted.has(name) ? name : pathToFileURL(path).href;
  if (!wanted.has(module) || Object(own) !== own || patched.has(own)) return own;
  patched.add(own);
  for (const path of wanted.get(module).keys()) changed(own, module, path);
  return own;
};

process.on('exit', () => {
  if (missing.size === 0) return;
  const names = [...missing].map((one) => one.replace(/^file:\/\/[^#]*\//, ''));
  stderr.write(`cannot test: ${names.join(', ')} was not found in what the script imported\n`);
  process.exitCode = 125;
});
const path = resolve(script);
argv.splice(1, 3, path);
await import(pathToFileURL(path).href);
