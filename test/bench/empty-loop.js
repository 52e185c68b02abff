import { openSync, readFileSync, readSync } from 'node:fs';
import { Worker, isMainThread, workerData } from 'node:worker_threads';

/*
 * The floor of any sampler in Node: a worker that wakes up every so many milliseconds and does nothing; given a pid, one that then reads
 * 128 bytes of that process's memory, the least that watching can be. Arguments: period in ms, seconds, pid.
 */

if (isMainThread) {
  const [periodMs, seconds, pid] = process.argv.slice(2).map(Number);
  new Worker(new URL(import.meta.url), { workerData: { periodMs, pid } });
  process.stdout.write(`READY ${process.pid} 0\n`);
  setTimeout(() => process.exit(0), seconds * 1000);
} else {
  const { periodMs, pid } = workerData;
  const cell = new Int32Array(new SharedArrayBuffer(4));
  if (pid === undefined) for (;;) Atomics.wait(cell, 0, 0, periodMs);
  const maps = readFileSync(`/proc/${pid}/maps`, 'latin1').split('\n');
  const address = Number.parseInt(
    maps.find((line) => line.includes('[heap]')),
    16,
  );
  const memory = openSync(`/proc/${pid}/mem`, 'r');
  const buffer = Buffer.alloc(128);
  // So that V8 has compiled it, as trace does.
  for (let i = 0; i < 8000; i++) readSync(memory, buffer, 0, buffer.length, address);
  for (;;) {
    Atomics.wait(cell, 0, 0, periodMs);
    readSync(memory, buffer, 0, buffer.length, address);
  }
}
