import { execFileSync } from 'node:child_process';
import { closeSync, fsyncSync, openSync, readFileSync, rmSync, writeSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { Worker } from 'node:worker_threads';

/*
 * The blocking calls that services really make on their event loop, each in a function of its own so that a stack can name it.
 * Every one takes a nominal duration in milliseconds; what it really took is measured by the caller (plan.js).
 */

const flags = new Int32Array(new SharedArrayBuffer(8));

/** CPU time the main thread has used, nanoseconds; the kernel brings it up to date at its ticks, every 1 to 4 ms. */
function threadCpu() {
  return Number(readFileSync('/proc/self/schedstat', 'utf8').split(' ')[0]);
}

/** Computes until this thread has used so much CPU time: rendering, a regular expression, a JSON of 50 MB. */
export function blockingSpin(ms) {
  const end = threadCpu() + ms * 1e6;
  let total = 0;
  while (threadCpu() < end) for (let i = 0; i < 100_000; i++) total += i * i;
  return total;
}

export function blockingSleep(ms) {
  Atomics.wait(flags, 0, 0, ms);
}

/** Writes and syncs a file, as a log or a cache does. */
export function blockingFile(ms) {
  const end = process.hrtime.bigint() + BigInt(ms) * 1_000_000n;
  const path = join(tmpdir(), `tracewright-target-${process.pid}`);
  const file = openSync(path, 'w');
  const block = Buffer.alloc(65_536, 120);
  while (process.hrtime.bigint() < end) {
    writeSync(file, block, 0, block.length, 0);
    fsyncSync(file);
  }
  closeSync(file);
  rmSync(path);
}

let client;

/** Synchronous HTTP as the packages that offer it do: a worker asks, the main thread waits on a futex. */
export function blockingHttp(ms) {
  Atomics.store(flags, 1, 0);
  client.postMessage(ms);
  Atomics.wait(flags, 1, 0);
}

/** Waits for a child process. */
export function blockingExec(ms) {
  execFileSync('sleep', [(ms / 1000).toFixed(3)]);
}

/** Starts what `blockingHttp` needs; call once, before the first block. */
export function prepareHttp(port) {
  client = new Worker(new URL('http-client.js', import.meta.url), { workerData: { port, flags } });
  client.unref();
}

export const KINDS = {
  spin: blockingSpin,
  sleep: blockingSleep,
  file: blockingFile,
  http: blockingHttp,
  exec: blockingExec,
};
