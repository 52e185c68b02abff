import { Worker, isMainThread, workerData } from 'node:worker_threads';

/* The floor of any sampler in Node: a worker that wakes up every so many milliseconds and does nothing. */

if (isMainThread) {
  new Worker(new URL(import.meta.url), { workerData: Number(process.argv[2]) });
  process.stdout.write(`READY ${process.pid} 0\n`);
  setTimeout(() => process.exit(0), Number(process.argv[3]) * 1000);
} else {
  const cell = new Int32Array(new SharedArrayBuffer(4));
  for (;;) Atomics.wait(cell, 0, 0, workerData);
}
