import { get } from 'node:http';
import { parentPort, workerData } from 'node:worker_threads';

/* The worker behind blockingHttp: one request a message, then wakes the waiting thread. */

const { port, flags } = workerData;

parentPort.on('message', (ms) => {
  const done = () => {
    Atomics.store(flags, 1, 1);
    Atomics.notify(flags, 1);
  };
  get({ port, host: '127.0.0.1', path: `/${ms}`, agent: false }, (answer) => {
    answer.resume().on('end', done);
  }).on('error', done);
});
