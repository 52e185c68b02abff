import { existsSync, openSync, readSync } from 'node:fs';

/*
 * Reads the state of a process's main thread some thousand times a second and says at the end how much of the time it was stopped (T) or
 * held by a tracer (t): `watch-stops.js <pid> <seconds> [file]`. With a file it ends as soon as that is gone.
 */

const [pid, seconds] = process.argv.slice(2, 4).map(Number);
const file = process.argv[4];
/** Looks between two at the file: it costs as much as one. */
const FILE_EVERY = 50;
/** Between two looks, ms; the kernel's timers make about 0.15 of it. */
const PAUSE_MS = 0.1;

const stat = openSync(`/proc/${pid}/task/${pid}/stat`, 'r');
const buffer = Buffer.alloc(512);
const cell = new Int32Array(new SharedArrayBuffer(4));
const now = () => Number(process.hrtime.bigint()) / 1e9;

const begin = now();
let last = begin;
let stoppedAt = null;
const result = { looks: 0, seconds: 0, stopped: 0, stops: 0, longest: 0 };
while (last < begin + seconds) {
  if (file !== undefined && result.looks % FILE_EVERY === 0 && !existsSync(file)) break;
  const length = readSync(stat, buffer, 0, buffer.length, 0);
  const at = now();
  const state = String.fromCharCode(buffer[buffer.lastIndexOf(')', length) + 2]);
  const isStopped = state === 'T' || state === 't';
  result.looks += 1;
  if (isStopped) {
    // Half of what lies between two looks belongs to either.
    stoppedAt ??= (last + at) / 2;
    result.longest = Math.max(result.longest, at - stoppedAt);
  } else if (stoppedAt !== null) {
    const pause = (last + at) / 2 - stoppedAt;
    result.stopped += pause;
    result.stops += 1;
    result.longest = Math.max(result.longest, pause);
    stoppedAt = null;
  }
  last = at;
  Atomics.wait(cell, 0, 0, PAUSE_MS);
}
if (stoppedAt !== null) {
  result.stopped += last - stoppedAt;
  result.stops += 1;
}
result.seconds = last - begin;
process.stdout.write(`${JSON.stringify(result)}\n`);
