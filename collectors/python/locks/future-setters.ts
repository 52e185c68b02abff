import type { Seconds } from '../../../src/core/types.ts';
import { isAddress } from '../objects.ts';
import type { StillThread, ThreadLook } from './thread-look.ts';

/** Which event loop has to run before a `concurrent.futures.Future` is done, where that can be told. */

export interface LoopThread {
  readonly tid: number;
  /** Address of the loop object. */
  readonly loop: number;
}

const LOOP_FILE = /(?:^|\/)asyncio\/(?:base_events|runners)\.py$/;
const CHAIN_FILE = /(?:^|\/)asyncio\/(?:futures|tasks)\.py$/;
/** Handles in a loop's queue, callbacks of a future, cells of a closure that are looked at. */
const HANDLES = 1024;
const CALLBACKS = 16;
const CELLS = 16;

/** The loops that these threads run. */
export function readLoops(
  look: ThreadLook,
  waiting: readonly { readonly thread: StillThread; readonly since: Seconds }[],
): readonly LoopThread[] {
  return waiting.flatMap(({ thread }) => {
    const loop = look.sound(() => loopOf(look, thread));
    return loop === null || loop === 0 ? [] : [{ tid: thread.tid, loop }];
  });
}

function loopOf(look: ThreadLook, { frames }: StillThread): number {
  const running = frames.findLast(
    ({ frame }) => LOOP_FILE.test(frame.file) && /\brun_forever$/.test(frame.function),
  );
  return running === undefined ? 0 : look.contents.variable(running, 'self');
}

/** Threads whose loop must turn for the future to be done: its coroutine is in their queue, or is their task. */
export function completersOf(
  future: number,
  { look, loops }: { readonly look: ThreadLook; readonly loops: readonly LoopThread[] },
): readonly number[] {
  return loops
    .filter(({ loop }) => isQueued(look, loop, future) || isChained(look, loop, future))
    .map(({ tid }) => tid);
}

/** `run_coroutine_threadsafe` has queued a callback that will make the task: the future is in its closure. */
function isQueued(look: ThreadLook, loop: number, future: number): boolean {
  const ready = look.locks.attributes.get(loop, '_ready');
  if (ready === null || !isAddress(ready)) return false;
  return look.locks
    .dequeItems(ready)
    .slice(0, HANDLES)
    .some((handle) => functionsIn(look, handle).some((one) => holds(look, one, future)));
}

/** The task is there, and the future is chained to it: a callback of the future has the task's loop in its closure. */
function isChained(look: ThreadLook, loop: number, future: number): boolean {
  const callbacks = look.locks.attributes.get(future, '_done_callbacks');
  if (callbacks === null || !isAddress(callbacks)) return false;
  const { objects } = look.locks.values;
  const { memory, table } = objects;
  for (const callback of [...look.locks.values.items(callbacks)].slice(0, CALLBACKS)) {
    if (look.locks.values.typeOf(callback).name !== 'function') continue;
    const code = memory.pointer(callback + table.callable.functionCode);
    const file = objects.text(memory.pointer(code + table.code.filename));
    if (CHAIN_FILE.test(file) && holds(look, callback, loop)) return true;
  }
  return false;
}

/** The functions that an object's own fields refer to: `asyncio.Handle` keeps its callback in a slot. */
function functionsIn(look: ThreadLook, address: number): readonly number[] {
  const { values } = look.locks;
  const { memory } = values.objects;
  const { basicSize } = values.typeOf(address);
  const found: number[] = [];
  for (let offset = 16; offset + 8 <= Math.min(basicSize, 256); offset += 8) {
    const value = memory.pointer(address + offset);
    if (isAddress(value) && look.sound(() => values.typeOf(value).name) === 'function')
      found.push(value);
  }
  return found;
}

/** Whether a function's closure holds an object. */
function holds(look: ThreadLook, callable: number, wanted: number): boolean {
  const { memory, table } = look.locks.values.objects;
  const closure = memory.pointer(callable + table.callable.functionClosure);
  if (!isAddress(closure)) return false;
  return [...look.locks.values.items(closure)]
    .slice(0, CELLS)
    .some((cell) => isAddress(cell) && memory.pointer(cell + table.callable.cell) === wanted);
}
