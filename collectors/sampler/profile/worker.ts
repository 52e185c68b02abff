import { parentPort, receiveMessageOnPort, workerData } from 'node:worker_threads';
import { raisePriority } from '../own-thread.ts';
import type { ProfileCommand, ProfileSettings } from './messages.ts';
import { ProfileLoop } from './profile-loop.ts';

/** The thread that takes profiles: nothing else runs here, and between rounds it sleeps on a shared cell. */

if (parentPort !== null) {
  const port = parentPort;
  const { cells, settings } = workerData as {
    readonly cells: SharedArrayBuffer;
    readonly settings: ProfileSettings;
  };
  raisePriority();
  const receive = (): ProfileCommand | undefined =>
    receiveMessageOnPort(port)?.message as ProfileCommand | undefined;
  const post = port.postMessage.bind(port);
  new ProfileLoop(new Int32Array(cells), { receive, post }, settings).run();
}
