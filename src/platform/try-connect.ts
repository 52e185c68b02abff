import { connect } from 'node:net';
import type { Seconds } from '../core/types.ts';
import { formatSeconds } from '../core/units.ts';

/** One attempt at a TCP connection, closed at once; null when it was accepted, else why not (`ECONNREFUSED`). Sends nothing. */
export function tryConnect(host: string, port: number, limit: Seconds): Promise<string | null> {
  return new Promise((resolve) => {
    const socket = connect({ host, port });
    const end = (reason: string | null): void => {
      clearTimeout(timer);
      socket.destroy();
      resolve(reason);
    };
    const timer = setTimeout(() => end(`no answer in ${formatSeconds(limit)}`), limit * 1e3);
    socket.once('connect', () => end(null));
    socket.once('error', (error: NodeJS.ErrnoException) => end(error.code ?? error.message));
  });
}
