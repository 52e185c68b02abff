import type { HeaderPairs } from '../core/secrets/exchanges.ts';
import type { Seconds } from '../core/types.ts';
import type { KeptBody } from './kept-body.ts';

/** Why a request had no whole answer: `error.type` of its span. */
export type ExchangeFailure =
  | 'client.closed'
  | 'upstream.refused'
  | 'upstream.unreachable'
  | 'upstream.closed'
  | 'upstream.invalid'
  | 'request.invalid'
  | 'upgrade.refused'
  | 'proxy.stopped';

/** One request that passed, and its answer. */
export interface Exchange {
  /** From 0, by when their heads came. */
  readonly index: number;
  /** Unix time. */
  readonly from: Seconds;
  to: Seconds;
  readonly method: string;
  /** Path and query as they were sent. */
  readonly target: string;
  /** As they were sent to the upstream; as they came where nothing was sent. */
  requestHeaders: HeaderPairs;
  /** As they came, with those for this hop: looked through for credentials, and not recorded. */
  readonly receivedHeaders: HeaderPairs;
  readonly requestBody: KeptBody;
  /** Of the upstream's answer; null where there was none. */
  status: number | null;
  responseHeaders: HeaderPairs;
  readonly responseBody: KeptBody;
  /** From its head to that of the answer. */
  head: Seconds | null;
  /** From its head to the first byte of the answer's body. */
  firstByte: Seconds | null;
  failure: ExchangeFailure | null;
}

/** The value of the first header of a name, in lower case; null where there is none. */
export function headerOf(headers: HeaderPairs, name: string): string | null {
  return headers.find(([one]) => one.toLowerCase() === name)?.[1] ?? null;
}

/** Whether the answer is a stream of events. */
export function isEventStream({ responseHeaders }: Exchange): boolean {
  return /^text\/event-stream\b/i.test(headerOf(responseHeaders, 'content-type') ?? '');
}
