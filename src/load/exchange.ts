import type { RequestError } from '../core/load-types.ts';
import type { Seconds } from '../core/types.ts';

/** What the wire found out about one request: mutable, reused by the wire's caller, valid until it is sent with again. */
export abstract class Exchange {
  startedAt: Seconds = 0;
  sentAt: Seconds = 0;
  connectedAt: Seconds | null = null;
  firstByteAt: Seconds | null = null;
  endedAt: Seconds = 0;
  status: number | null = null;
  error: RequestError | null = null;
  inputTokens: number | null = null;
  outputTokens: number | null = null;
  cachedTokens: number | null = null;
  reasoningTokens: number | null = null;
  finishReason: string | null = null;
  responseId: string | null = null;
  resends = 0;
  bytesSent = 0;
  bytesReceived = 0;
  /** The answer's text, where it was asked for. */
  text = '';
  /** Unix time in the answer's Date header, whole seconds; null when it had none. */
  serverDate: Seconds | null = null;

  /** An output came at `at`; the wire calls it for each output event, in order. Hot: 100,000 times a second. */
  abstract onOutput(at: Seconds): void;
  /** It is over; everything the wire wrote is final. Called exactly once for each `send`. */
  abstract onEnd(): void;

  /** Forgets the request before; the wire calls it when it is sent with. */
  clear(): void {
    this.startedAt = 0;
    this.sentAt = 0;
    this.connectedAt = null;
    this.firstByteAt = null;
    this.endedAt = 0;
    this.status = null;
    this.error = null;
    this.inputTokens = null;
    this.outputTokens = null;
    this.cachedTokens = null;
    this.reasoningTokens = null;
    this.finishReason = null;
    this.responseId = null;
    this.resends = 0;
    this.bytesSent = 0;
    this.bytesReceived = 0;
    this.text = '';
    this.serverDate = null;
  }
}
