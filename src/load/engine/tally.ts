import { ExponentialHistogram } from '../../core/exponential-histogram.ts';
import { byLatency, LATENCY_KEYS, type LatencyKey } from '../../core/load-types.ts';
import type { Seconds } from '../../core/types.ts';
import type { EngineBatch } from '../contracts.ts';
import { GAP_BIAS, type Slot } from './slot.ts';

/** What was measured in one stage since it was last taken. Warm-up requests and failures never come in here. */
export class Tally {
  readonly #latency: Readonly<Record<LatencyKey, ExponentialHistogram>>;
  readonly #lateness = new ExponentialHistogram();
  readonly #isStreaming: boolean;
  #queued = 0;
  #inFlightSeconds = 0;
  #inFlightMax = 0;

  constructor(isStreaming: boolean) {
    this.#isStreaming = isStreaming;
    this.#latency = byLatency(() => new ExponentialHistogram());
  }

  /** A measured request waits for a place. */
  queue(): void {
    this.#queued++;
  }

  /** So many requests were under way for so long, within the measured window. */
  inFlight(requests: number, during: Seconds): void {
    this.#inFlightSeconds += requests * during;
    if (requests > this.#inFlightMax) this.#inFlightMax = requests;
  }

  /** A measured request was sent, successful or not: how late is the client's own doing. Waiting for a place or a connection is not. */
  sent(slot: Slot): void {
    const left = slot.connectedAt === null ? slot.startedAt : slot.dispatchedAt;
    this.#lateness.record(Math.max(0, left - slot.readyAt));
  }

  /** A measured request succeeded. */
  succeeded(slot: Slot): void {
    const latency = this.#latency;
    const { startedAt, scheduledAt, endedAt, firstOutputAt, lastOutputAt, outputs } = slot;
    latency.e2e.record(endedAt - startedAt);
    latency.e2e_scheduled.record(endedAt - scheduledAt);
    // As the server counts them; else each event is one, which is exact unless the server joins tokens.
    const tokens = slot.outputTokens ?? outputs;
    if (tokens > 0) latency.ntpot.record((endedAt - startedAt) / tokens);
    if (slot.connectedAt !== null) latency.connect.record(slot.connectedAt - slot.dispatchedAt);
    if (!this.#isStreaming || outputs === 0) return;
    latency.ttft.record(firstOutputAt - startedAt);
    latency.ttft_scheduled.record(firstOutputAt - scheduledAt);
    if (outputs < 2) return;
    const generating = lastOutputAt - firstOutputAt;
    // To the last output: what comes after it (usage, the end marker) is no token's time.
    if (tokens > 1) latency.tpot.record(generating / (tokens - 1));
    latency.itl.recordBuckets(slot.gaps, {
      bias: GAP_BIAS,
      count: outputs - 1,
      sum: generating,
      min: slot.shortestGap,
      max: slot.longestGap,
    });
  }

  get isEmpty(): boolean {
    return (
      this.#lateness.count === 0 &&
      this.#latency.e2e.count === 0 &&
      this.#inFlightSeconds === 0 &&
      this.#queued === 0
    );
  }

  /** What came since the last call, each histogram as `drain` has it, which leaves it empty. */
  take<H>(
    stage: number,
    drain: (histogram: ExponentialHistogram) => H,
  ): EngineBatch<H>['stages'][number] {
    const latency: Partial<Record<LatencyKey, H>> = {};
    for (const key of LATENCY_KEYS) {
      if (this.#latency[key].count > 0) latency[key] = drain(this.#latency[key]);
    }
    const taken = {
      stage,
      latency,
      lateness: drain(this.#lateness),
      inFlightSeconds: this.#inFlightSeconds,
      inFlightMax: this.#inFlightMax,
      queued: this.#queued,
    };
    this.#queued = 0;
    this.#inFlightSeconds = 0;
    this.#inFlightMax = 0;
    return taken;
  }
}
