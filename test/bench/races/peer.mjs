// fast-check's scheduler on a planted race: peer.mjs <file> <runs>, with the module that FAST_CHECK names. Each turn of the loop that the
// program awaits (`setImmediate` of node:timers/promises) is a task that the scheduler releases when it likes.
import { register } from 'node:module';
import { pathToFileURL } from 'node:url';

const [file, runs] = process.argv.slice(2);
process.argv = [process.argv[0], file];
const { default: fc } = await import(pathToFileURL(process.env.FAST_CHECK).href);

const source = `
export const setImmediate = (value) => globalThis.nextTurn(value);
export const setTimeout = (ms, value) => globalThis.nextTurn(value);
`;
const stub = `data:text/javascript,${encodeURIComponent(source)}`;
const hooks = `export function resolve(wanted, context, next) {
  return wanted === 'node:timers/promises' ? { url: ${JSON.stringify(stub)}, shortCircuit: true } : next(wanted, context);
}`;
register(`data:text/javascript,${encodeURIComponent(hooks)}`);

/** A program that awaits nothing of the scheduler for so long, and has not ended, hangs. */
const IDLE_MS = 500;

let tried = 0;
let first = null;
let steps = null;
const began = performance.now();
const property = fc.asyncProperty(fc.scheduler(), async (scheduler) => {
  tried++;
  process.exitCode = undefined;
  globalThis.nextTurn = (value) => scheduler.schedule(Promise.resolve(value));
  let isDone = false;
  const done = import(`${pathToFileURL(file).href}?run=${tried}`).then(
    () => (isDone = true),
    () => (process.exitCode = 1),
  );
  // The module is loaded from disk, so that real turns pass until it has scheduled something or is done; where none does any more, it hangs.
  let last = performance.now();
  while (!isDone && process.exitCode === undefined && performance.now() - last < IDLE_MS) {
    if (scheduler.count() > 0) {
      await scheduler.waitOne();
      last = performance.now();
    } else await new Promise((next) => setTimeout(next, 1));
  }
  void done;
  const isRight = isDone && process.exitCode !== 1;
  if (!isRight) {
    first ??= { tried, seconds: (performance.now() - began) / 1e3 };
    steps = scheduler.report().length;
  }
  return isRight;
});
const result = await fc.check(property, { numRuns: Number(runs), seed: 1 });
process.exitCode = 0;
console.log(
  JSON.stringify({
    found: result.failed,
    tried: first?.tried ?? tried,
    seconds: first?.seconds ?? (performance.now() - began) / 1e3,
    steps,
  }),
);
process.exit(0);
