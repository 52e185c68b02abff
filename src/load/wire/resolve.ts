import { lookup } from 'node:dns/promises';
import { connect, isIP } from 'node:net';
import { TraceError } from '../../core/errors.ts';
import { EXIT } from '../../core/exit-code.ts';
import { printable } from '../../core/text.ts';
import type { Seconds } from '../../core/types.ts';
import type { EndpointPlan } from '../plan.ts';

/** One of several addresses of a name gets this long to accept a connection. */
const TRY_TIMEOUT: Seconds = 2;
/** More addresses than these are not tried. */
const MAX_ADDRESSES = 8;

/**
 * The address of a name, resolved once. Where it has several (`localhost` is ::1 and 127.0.0.1, and a server often listens on one only), the first
 * that accepts a connection; the first of all when none does, so that the run says how it fails. Throws a TraceError when there is no address.
 */
export async function resolveAddress(host: string, port: number): Promise<EndpointPlan['address']> {
  if (isIP(host) !== 0) return { kind: 'tcp', host, port };
  let addresses: string[];
  try {
    addresses = (await lookup(host, { all: true, verbatim: true })).map(({ address }) => address);
  } catch (error) {
    const code = error instanceof Error && 'code' in error ? ` (${String(error.code)})` : '';
    throw new TraceError('ERR_NAME_NOT_FOUND', `no address for ${printable(host)}${code}`, {
      exitCode: EXIT.notFound,
      remedy: 'Check the name, or give the address itself.',
      cause: error,
    });
  }
  const candidates = [...new Set(addresses)].slice(0, MAX_ADDRESSES);
  if (candidates.length > 1) {
    for (const candidate of candidates) {
      if (await accepts(candidate, port)) return { kind: 'tcp', host: candidate, port };
    }
  }
  return { kind: 'tcp', host: candidates[0] ?? host, port };
}

function accepts(host: string, port: number): Promise<boolean> {
  return new Promise((resolve) => {
    const socket = connect({ host, port, timeout: TRY_TIMEOUT * 1e3 });
    const settle = (accepted: boolean) => {
      socket.destroy();
      resolve(accepted);
    };
    socket.once('connect', () => settle(true));
    socket.once('timeout', () => settle(false));
    socket.once('error', () => settle(false));
  });
}
