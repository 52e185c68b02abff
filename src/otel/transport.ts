import type { Bytes, Seconds } from '../core/types.ts';

/** One way to hand a batch to a receiver, and what may come of it: the same words for OTLP/HTTP and OTLP/gRPC. */

/** What came back when a receiver took the batch; the body is cut at a limit. */
export interface Answer {
  readonly body: Buffer;
  readonly contentType: string;
}

/** What became of one attempt. `why` is for the user to read and safe to print. */
export type Outcome =
  | { readonly kind: 'taken'; readonly answer: Answer }
  /** The receiver is busy. `after` is the pause it asked for, null when it named none. */
  | { readonly kind: 'busy'; readonly why: string; readonly after: Seconds | null }
  | { readonly kind: 'too-large'; readonly why: string }
  /** The receiver will not have this batch; `lasting`: nor the next one. */
  | ({ readonly kind: 'refused' } & Trouble)
  /** No answer; `lasting`: another attempt would get none either. */
  | ({ readonly kind: 'unanswered' } & Trouble);

/** What stands in the way, and what to do about it. */
export interface Trouble {
  readonly why: string;
  readonly lasting: boolean;
  readonly remedy: string | null;
}

/** One receiver of one signal. */
export interface Transport {
  /** Sends one request's message. Never rejects. */
  send(message: Buffer, deadline: AbortSignal): Promise<Outcome>;
  close(): void;
}

/** A partial success with its message is a few hundred bytes; a server may send anything. */
export const ANSWER_LIMIT: Bytes = 64 * 1024;
