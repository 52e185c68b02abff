// Work with a time-out and the one signal that ends the program.
import { setMaxListeners } from 'node:events';
import pTimeout from 'p-timeout';

export function shutdown() {
  const controller = new AbortController();
  setMaxListeners(0, controller.signal);
  return controller.signal;
}

export function work(signal) {
  return pTimeout(Promise.resolve('done'), { milliseconds: 1000, signal });
}
