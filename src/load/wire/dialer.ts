import { connect, isIP, type OnReadOpts, type Socket } from 'node:net';
import {
  connect as connectTls,
  type ConnectionOptions,
  createSecureContext,
  type SecureContext,
} from 'node:tls';
import type { EndpointPlan } from '../plan.ts';

/** Opens sockets to one endpoint. What is costly (reading certificates) is done once, and TLS sessions are resumed. */
export class Dialer {
  readonly #endpoint: EndpointPlan;
  readonly #context: SecureContext | null;
  #session: Buffer | undefined;

  constructor(endpoint: EndpointPlan) {
    this.#endpoint = endpoint;
    const { tls } = endpoint;
    this.#context = tls === null ? null : createSecureContext(authorityOf(tls));
  }

  get secure(): boolean {
    return this.#context !== null;
  }

  /** Not connected yet. `connect` means TCP, `secureConnect` (of TLS) that it can be used. */
  open(onread: OnReadOpts): Socket {
    const { address, tls } = this.#endpoint;
    const to =
      address.kind === 'unix'
        ? { path: address.path }
        : { host: address.host, port: address.port, noDelay: true };
    if (tls === null || this.#context === null) return connect({ ...to, onread });
    // Documented, and missing in the types of Node 20.
    const options: ConnectionOptions & { onread: OnReadOpts } = {
      ...to,
      onread,
      secureContext: this.#context,
      ...identityOf(tls),
      ALPNProtocols: ['http/1.1'],
      ...(this.#session === undefined ? {} : { session: this.#session }),
    };
    const socket = connectTls(options);
    if (address.kind === 'tcp') socket.setNoDelay(true);
    socket.on('session', (session) => {
      this.#session = session;
    });
    return socket;
  }
}

type Tls = NonNullable<EndpointPlan['tls']>;

/** Who may vouch for the server, where that was said. */
export function authorityOf({ ca }: Tls): { readonly ca?: string } {
  return ca === null ? {} : { ca };
}

/** Who the server has to be. An address is no server name (RFC 6066), and is checked against the certificate as the host. */
export function identityOf({ verify, servername }: Tls): {
  readonly rejectUnauthorized: boolean;
  readonly servername?: string;
} {
  return { rejectUnauthorized: verify, ...(isIP(servername) === 0 ? { servername } : {}) };
}
