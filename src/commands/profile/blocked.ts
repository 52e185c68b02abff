import { Sampler } from '../../../collectors/sampler/sampler.ts';
import { SamplingCrew } from '../../../collectors/sampler/sampling-crew.ts';
import type { SeenRun } from '../../../collectors/sampler/profile/python-profiler.ts';
import { ATTR, SPAN } from '../../core/semconv.ts';
import type { Clock, ProcessTarget, Seconds } from '../../core/types.ts';

/** `--mode blocked`: of all looks those that fall into a turn of an event loop that lasted. */

/** Runs kept until it is known whether they were in a blocked turn; some 100 bytes each. */
const WAITING_LIMIT = 1_000_000;

interface Block {
  readonly from: Seconds;
  readonly to: Seconds;
}

export class BlockedFilter {
  /** Blocked turns that were seen. */
  blocks = 0;
  /** Runs that could not be kept. */
  dropped = 0;
  readonly #clock: Clock;
  readonly #threshold: Seconds;
  readonly #crew = new SamplingCrew();
  readonly #controller = new AbortController();
  readonly #observing: Promise<void>[] = [];
  readonly #starts: (() => void)[] = [];
  readonly #samplers: Sampler[] = [];
  readonly #blocks = new Map<string, Block[]>();
  readonly #runs: SeenRun[] = [];
  #isLooking = false;

  constructor(clock: Clock, threshold: Seconds) {
    this.#clock = clock;
    this.#threshold = threshold;
  }

  /** Watches the loops of a process; why none can be watched, null when one can. */
  async add(target: ProcessTarget, runtime: 'python' | 'node'): Promise<string | null> {
    const sampler = new Sampler({
      runtime,
      threshold: this.#threshold,
      raw: false,
      stackSource: null,
      crew: this.#crew,
    });
    const availability = await sampler.probe(target);
    if (!sampler.isOpen)
      return availability.available ? 'it could not be opened' : availability.reason;
    this.#samplers.push(sampler);
    const start = (): void => void this.#observing.push(this.#observe(sampler, target));
    if (this.#isLooking) start();
    else this.#starts.push(start);
    return availability.available ? null : availability.reason;
  }

  begin(): void {
    this.#isLooking = true;
    for (const start of this.#starts) start();
  }

  take(run: SeenRun): void {
    if (this.#runs.length < WAITING_LIMIT) this.#runs.push(run);
    else this.dropped++;
  }

  /** The parts of runs that fall into blocked turns of their own thread, in the order in which they came. */
  async end(): Promise<readonly SeenRun[]> {
    await this.close();
    return this.#runs.flatMap((run) => this.#within(run));
  }

  async close(): Promise<void> {
    this.#controller.abort();
    await Promise.all(this.#observing);
    await Promise.all(this.#samplers.map((sampler) => sampler.close()));
  }

  async #observe(sampler: Sampler, target: ProcessTarget): Promise<void> {
    const { signal } = this.#controller;
    const offset = this.#clock.now() - this.#clock.mono();
    for await (const seen of sampler.observe(target, { signal, clock: this.#clock })) {
      if (seen.kind !== 'span' || seen.name !== SPAN.blocked) continue;
      const key = `${target.pid}/${String(seen.attributes[ATTR.threadId])}`;
      const blocks = this.#blocks.get(key) ?? [];
      this.#blocks.set(key, blocks);
      blocks.push({ from: seen.from - offset, to: seen.to - offset });
      this.blocks++;
    }
  }

  #within(run: SeenRun): readonly SeenRun[] {
    const lasted = run.to - run.from;
    if (lasted <= 0) return [];
    return (this.#blocks.get(`${run.pid}/${run.tid}`) ?? []).flatMap((block) => {
      const from = Math.max(run.from, block.from);
      const to = Math.min(run.to, block.to);
      if (to <= from) return [];
      const share = (to - from) / lasted;
      return [
        {
          ...run,
          from,
          to,
          count: Math.max(1, Math.round(run.count * share)),
          weight: run.weight * share,
        },
      ];
    });
  }
}
