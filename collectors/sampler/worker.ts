import { parentPort, receiveMessageOnPort, workerData } from 'node:worker_threads';
import { CrewLoop } from './crew-loop.ts';
import type { Command } from './messages.ts';
import { raisePriority } from './own-thread.ts';

/** The sampling thread: nothing else runs here, and between samples it sleeps on a shared cell. */

if (parentPort !== null) {
  const port = parentPort;
  const { cells } = workerData as { readonly cells: SharedArrayBuffer };
  raisePriority();
  new CrewLoop(new Int32Array(cells), {
    receive: () => receiveMessageOnPort(port)?.message as Command | undefined,
    post: (message) => port.postMessage(message),
  }).run();
}
