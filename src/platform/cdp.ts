import type { WebSocket } from 'ws';
import { isOverNested } from '../core/nesting.ts';
import type { Bytes, Seconds } from '../core/types.ts';
import { formatSeconds } from '../core/units.ts';

/**
 * A client for the Chrome DevTools Protocol as far as trace needs it: commands with a deadline, events, a bound on what a message may
 * hold. The other side is the target: what it sends is checked here for its form only, and results come out as `unknown`.
 */

/** Every command that any module may send. None of them runs code in the target; `test/architecture.test.ts` and this type keep it so. */
export type CdpMethod =
  | 'HeapProfiler.getSamplingProfile'
  | 'HeapProfiler.startSampling'
  | 'HeapProfiler.stopSampling'
  | 'HeapProfiler.takeHeapSnapshot'
  | 'NodeRuntime.notifyWhenWaitingForDisconnect'
  | 'Profiler.enable'
  | 'Profiler.setSamplingInterval'
  | 'Profiler.start'
  | 'Profiler.stop'
  | 'Runtime.getHeapUsage';

/** A CPU profile of 30 s at 1 kHz is 1 to 3 MB; ten times that is something else. */
const MESSAGE_LIMIT: Bytes = 32 * 1024 * 1024;
const CONNECT_TIMEOUT: Seconds = 2;
/** The target answers between two turns of its loop, or within one where it runs JavaScript: a long native call delays it. */
const COMMAND_TIMEOUT: Seconds = 10;
/** How long a closing handshake may take before the socket is cut. */
const CLOSE_TIMEOUT: Seconds = 0.5;

/** Why a command has no result. `closed`, `timeout` and `malformed` concern the connection; `refused` is the target's answer. */
export class CdpError extends Error {
  readonly reason: 'unreachable' | 'closed' | 'timeout' | 'refused' | 'malformed';

  constructor(reason: CdpError['reason'], message: string, cause?: unknown) {
    super(message, { cause });
    this.name = 'CdpError';
    this.reason = reason;
  }
}

interface Pending {
  readonly resolve: (result: unknown) => void;
  readonly reject: (error: CdpError) => void;
  readonly timer: NodeJS.Timeout;
}

/** One WebSocket to an inspector. Any malformed message closes it: a peer that breaks the protocol once is not talked to further. */
export class CdpConnection {
  readonly #socket: WebSocket;
  readonly #pending = new Map<number, Pending>();
  readonly #listeners = new Map<string, (parameters: unknown) => void>();
  /** Settles when the connection has ended, however it did; never rejects. */
  readonly closed: Promise<CdpError>;
  #failure: CdpError | null = null;
  #opened = false;
  #nextId = 1;

  private constructor(socket: WebSocket) {
    this.#socket = socket;
    this.closed = new Promise((resolve) => {
      socket.on('close', () => {
        const error =
          this.#failure ?? new CdpError('closed', 'the inspector closed the connection');
        this.#failure = error;
        for (const [id, pending] of this.#pending) this.#settle(id, pending).reject(error);
        resolve(error);
      });
    });
    // 'close' follows every 'error': no connection, or an over-long or undecodable message.
    socket.on('error', (error) => {
      const reason = this.#opened ? 'malformed' : 'unreachable';
      this.#fail(new CdpError(reason, `${socket.url}: ${error.message}`, error));
    });
    socket.on('message', (data, isBinary) => {
      if (isBinary || !Buffer.isBuffer(data))
        this.#fail(new CdpError('malformed', 'the inspector sent a binary message'));
      else this.#receive(data);
    });
  }

  /** Connects to a `ws://` URL. Rejects with a CdpError. */
  static async connect(
    url: string,
    options: { readonly timeout?: Seconds; readonly messageLimit?: Bytes } = {},
  ): Promise<CdpConnection> {
    const { WebSocket } = await import('ws');
    const socket = new WebSocket(url, {
      handshakeTimeout: (options.timeout ?? CONNECT_TIMEOUT) * 1e3,
      maxPayload: options.messageLimit ?? MESSAGE_LIMIT,
      perMessageDeflate: false,
      followRedirects: false,
    });
    const connection = new CdpConnection(socket);
    const opened = new Promise<null>((resolve) => socket.once('open', () => resolve(null)));
    const failure = await Promise.race([opened, connection.closed]);
    if (failure !== null) throw failure;
    connection.#opened = true;
    return connection;
  }

  get isOpen(): boolean {
    return this.#failure === null && this.#socket.readyState === this.#socket.OPEN;
  }

  /** Calls `listener` with the parameters of each event of that name, replacing an earlier listener. */
  on(event: string, listener: (parameters: unknown) => void): void {
    this.#listeners.set(event, listener);
  }

  /** Sends a command and gives its result, unchecked. Rejects with a CdpError. */
  send(
    method: CdpMethod,
    parameters: Readonly<Record<string, unknown>> = {},
    timeout: Seconds = COMMAND_TIMEOUT,
  ): Promise<unknown> {
    return this.sendUnchecked(method, parameters, timeout);
  }

  /** The same for any command, also those that run code in the target: for `touch.ts` alone. */
  sendUnchecked(
    method: string,
    parameters: Readonly<Record<string, unknown>>,
    timeout: Seconds,
  ): Promise<unknown> {
    const failure = this.#failure;
    if (failure !== null) return Promise.reject(failure);
    const id = this.#nextId++;
    return new Promise((resolve, reject) => {
      const timer = setTimeout(() => {
        this.#pending.delete(id);
        reject(
          new CdpError('timeout', `${method} was not answered within ${formatSeconds(timeout)}`),
        );
      }, timeout * 1e3);
      this.#pending.set(id, { resolve, reject, timer });
      this.#socket.send(JSON.stringify({ id, method, params: parameters }));
    });
  }

  /** Cuts the connection without a word: the other side sees the end at once and waits for nothing. */
  cut(): void {
    this.#failure ??= new CdpError('closed', 'the connection was closed');
    this.#socket.terminate();
  }

  /** Says goodbye, and cuts the connection when that is not answered. Commands under way are rejected as `closed`. */
  async close(): Promise<void> {
    this.#failure ??= new CdpError('closed', 'the connection was closed');
    const cut = setTimeout(() => this.#socket.terminate(), CLOSE_TIMEOUT * 1e3);
    this.#socket.close();
    await this.closed;
    clearTimeout(cut);
  }

  #receive(bytes: Buffer): void {
    if (isOverNested(bytes)) {
      this.#fail(new CdpError('malformed', 'the inspector sent what is too deep or too wide'));
      return;
    }
    let message: unknown;
    try {
      message = JSON.parse(bytes.toString('utf8'));
    } catch (error) {
      this.#fail(new CdpError('malformed', 'the inspector sent something that is not JSON', error));
      return;
    }
    if (typeof message !== 'object' || message === null) {
      this.#fail(new CdpError('malformed', 'the inspector sent something that is not a message'));
      return;
    }
    if ('id' in message && typeof message.id === 'number') this.#answer(message.id, message);
    else if ('method' in message && typeof message.method === 'string')
      this.#listeners.get(message.method)?.('params' in message ? message.params : undefined);
  }

  /** An answer nobody waits for (any more) is left alone. */
  #answer(id: number, message: object): void {
    const pending = this.#pending.get(id);
    if (pending === undefined) return;
    this.#settle(id, pending);
    if ('error' in message) pending.reject(new CdpError('refused', errorText(message.error)));
    else pending.resolve('result' in message ? message.result : undefined);
  }

  #settle(id: number, pending: Pending): Pending {
    clearTimeout(pending.timer);
    this.#pending.delete(id);
    return pending;
  }

  #fail(error: CdpError): void {
    this.#failure ??= error;
    this.#socket.terminate();
  }
}

function errorText(error: unknown): string {
  return typeof error === 'object' &&
    error !== null &&
    'message' in error &&
    typeof error.message === 'string'
    ? error.message.slice(0, 200)
    : 'the inspector refused the command';
}
