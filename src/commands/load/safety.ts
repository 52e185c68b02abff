import { lookup } from 'node:dns/promises';
import { BlockList, isIP, isIPv6 } from 'node:net';
import { TraceError } from '../../core/errors.ts';
import { EXIT } from '../../core/exit-code.ts';
import { printable } from '../../core/text.ts';
import type { LoadOptions } from './options.ts';
import type { LoadExtent } from './extent.ts';

/** What must be confirmed before it is sent: load on a machine that anybody may reach, and a very large one. */

/** More streams at once than these are rarely meant, and exhaust what is in between: ports, connection tables, proxies. */
const MOST_STREAMS = 1000;

/** Addresses that are not routed on the Internet. */
const NEAR = new BlockList();
for (const [network, prefix] of [
  ['127.0.0.0', 8],
  ['0.0.0.0', 32],
  // RFC 1918.
  ['10.0.0.0', 8],
  ['172.16.0.0', 12],
  ['192.168.0.0', 16],
  // Link-local, and RFC 6598, which overlay networks use.
  ['169.254.0.0', 16],
  ['100.64.0.0', 10],
] as const) {
  NEAR.addSubnet(network, prefix, 'ipv4');
}
for (const [network, prefix] of [
  ['::', 127],
  ['fe80::', 10],
  ['fc00::', 7],
] as const) {
  NEAR.addSubnet(network, prefix, 'ipv6');
}

/** Whether an address can only be reached from near: loopback, private or link-local. */
export function isNear(address: string): boolean {
  const [, mapped] = /^::ffff:(\d+\.\d+\.\d+\.\d+)$/i.exec(address) ?? [];
  const plain = mapped ?? address.replace(/%.*$/, '');
  return NEAR.check(plain, isIPv6(plain) ? 'ipv6' : 'ipv4');
}

/** The addresses of a host that anybody may reach; none of a unix socket, or of a name that has no address. */
async function publicAddresses(options: LoadOptions): Promise<readonly string[]> {
  const { host, unix } = options.endpoint;
  if (unix !== null) return [];
  if (isIP(host) !== 0) return isNear(host) ? [] : [host];
  try {
    const addresses = await lookup(host, { all: true });
    return addresses.map(({ address }) => address).filter((address) => !isNear(address));
  } catch {
    // That there is none is said by who needs it.
    return [];
  }
}

/** Why the run has to be confirmed; empty when it need not be. Asks the name service, never the server. */
export async function concerns(
  options: LoadOptions,
  extent: LoadExtent,
): Promise<readonly string[]> {
  const found: string[] = [];
  const [address, ...more] = await publicAddresses(options);
  if (address !== undefined) {
    const { host } = options.endpoint;
    const others = more.length === 0 ? '' : ` and ${more.length} more`;
    const which = address === host ? '' : ` (${printable(address)}${others})`;
    found.push(`${printable(host)} is a public address${which}`);
  }
  if (extent.streams > MOST_STREAMS) {
    found.push(
      Number.isFinite(extent.streams)
        ? `up to ${extent.streams} streams at once`
        : `more than ${MOST_STREAMS} requests a second without a limit of streams`,
    );
  }
  return found;
}

/** The usage error that asks for --yes. */
export function unconfirmed(found: readonly string[]): TraceError {
  return new TraceError('ERR_LOAD_UNCONFIRMED', `not sent without --yes: ${found.join('; ')}`, {
    exitCode: EXIT.usage,
    remedy: 'Add --yes if this server is yours to load, or --dry-run to see the plan.',
  });
}
