import type { RequestError } from '../../../src/core/load-types.ts';
import type { Seconds } from '../../../src/core/types.ts';
import type { Exchange, Wire } from '../../../src/load/contracts.ts';

/** An exchange that notes its outputs. */
export class NotedExchange implements Exchange {
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
  text = '';
  serverDate: Seconds | null = null;
  /** When each output came. */
  readonly outputs: Seconds[] = [];
  ends = 0;
  readonly ended: Promise<this>;
  onOutput = (at: Seconds): void => {
    this.outputs.push(at);
  };
  onEnd: () => void;

  constructor() {
    let resolve: (value: this) => void;
    this.ended = new Promise<this>((done) => {
      resolve = done;
    });
    this.onEnd = () => {
      this.ends++;
      resolve(this);
    };
  }
}

/** Sends one request and waits for its end. */
export function ask(wire: Wire, body: string | Buffer = '{}'): Promise<NotedExchange> {
  const exchange = new NotedExchange();
  wire.send(wire.frame(Buffer.from(body), null), exchange);
  return exchange.ended;
}
