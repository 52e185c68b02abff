import type { Seconds } from '../../../src/core/types.ts';
import type { Wire } from '../../../src/load/contracts.ts';
import { Exchange } from '../../../src/load/exchange.ts';

/** An exchange that notes its outputs. */
export class NotedExchange extends Exchange {
  /** When each output came. */
  readonly outputs: Seconds[] = [];
  ends = 0;
  readonly ended: Promise<this>;
  #resolve: (value: this) => void = () => undefined;

  constructor() {
    super();
    this.ended = new Promise<this>((resolve) => {
      this.#resolve = resolve;
    });
  }

  onOutput(at: Seconds): void {
    this.outputs.push(at);
  }

  onEnd(): void {
    this.ends++;
    this.#resolve(this);
  }
}

/** Sends one request and waits for its end. */
export function ask(wire: Wire, body: string | Buffer = '{}'): Promise<NotedExchange> {
  const exchange = new NotedExchange();
  wire.send(wire.frame(Buffer.from(body), null), exchange);
  return exchange.ended;
}
