import { createServer, connect, type AddressInfo, type Socket } from 'node:net';
import { once } from 'node:events';
import { seededRandom } from '../../src/core/random.ts';
import type { Ratio, Seconds } from '../../src/core/types.ts';

/** What a link does with what goes through it; `straight` is the control for there being a link at all. */
export type Fault = 'straight' | 'delayed' | 'reset' | 'truncated';
export const FAULTS: readonly Fault[] = ['straight', 'delayed', 'reset', 'truncated'];

/** Longest delay of a piece of an answer: more than a turn of a loop, less than usual timeouts. */
const LONGEST_DELAY: Seconds = 0.05;
/** Of the connections are broken off, each somewhere in the first bytes of its answer. */
const BROKEN: Ratio = 0.3;
const BREAKS_WITHIN = 4096;

/** A TCP link to something upstream that may fail on purpose, on a loopback port of its own. */
export interface FaultyLink {
  readonly port: number;
  close(): Promise<void>;
}

/** Opens a link to `host:port`. The same seed breaks the same connections, counted in the order in which they come. */
export async function openFaultyLink(
  to: { readonly host: string; readonly port: number },
  fault: Fault,
  seed: number,
): Promise<FaultyLink> {
  const random = seededRandom(seed);
  const open = new Set<Socket>();
  const server = createServer((client) => {
    const upstream = connect(to);
    const end = fault === 'reset' || fault === 'truncated';
    const breaksAt = end && random() < BROKEN ? Math.floor(random() * BREAKS_WITHIN) : null;
    for (const socket of [client, upstream]) {
      open.add(socket);
      socket.once('close', () => open.delete(socket));
    }
    // One side's failure is the other's end; that is all a link can say.
    client.on('error', () => upstream.destroy());
    upstream.on('error', () => client.destroy());
    client.pipe(upstream);
    let passed = 0;
    let sent = Promise.resolve();
    const write = (part: Buffer): void => {
      if (!client.destroyed) client.write(part);
    };
    upstream.on('data', (part: Buffer) => {
      const room = breaksAt === null ? part.length : Math.max(0, breaksAt - passed);
      passed += part.length;
      if (room < part.length) {
        write(part.subarray(0, room));
        if (fault === 'reset') client.resetAndDestroy();
        else client.end();
        upstream.destroy();
      } else if (fault === 'delayed') {
        const wait = random() * LONGEST_DELAY * 1e3;
        sent = sent
          .then(() => new Promise((done) => setTimeout(done, wait)))
          .then(() => write(part));
      } else write(part);
    });
    upstream.on('end', () => void sent.then(() => client.end()));
  });
  server.listen(0, '127.0.0.1');
  await once(server, 'listening');
  const { port } = server.address() as AddressInfo;
  return {
    port,
    close: async () => {
      for (const socket of open) socket.destroy();
      server.close();
      await once(server, 'close');
    },
  };
}
