import { ExponentialHistogram, histogramQuantile } from '../../core/exponential-histogram.ts';
import type { Seconds } from '../../core/types.ts';
import type { EngineBatch, EngineEvents } from '../../load/contracts.ts';
import type { StagePlan } from '../../load/plan.ts';
import { renderLoadProgress } from '../../report/load-progress.ts';
import type { Environment, TextOutput } from '../command-line/command.ts';
import { GiveUp } from './give-up.ts';
import type { LoadOptions } from './options.ts';
import type { LoadRunScreen } from './settings.ts';
import { PLAIN_PROGRESS_EVERY, RunScreen } from '../watching/run-screen.ts';

/** Oftener than this nobody reads it, and writing to a slow terminal costs. */
const PROGRESS_EVERY: Seconds = 0.2;
/** Rates are of so long: long enough not to flicker, short enough to follow a change. */
const RATE_WINDOW: Seconds = 3;

/** What ended at about one moment. */
interface Ended {
  readonly at: Seconds;
  readonly answered: number;
  readonly tokens: number;
}

/** What a person sees of a load run: how it goes on, and what went wrong beside it. */
export class LoadScreen extends RunScreen<LoadOptions> implements LoadRunScreen {
  readonly giveUp: GiveUp = new GiveUp();
  readonly #stages: readonly StagePlan[];
  readonly #ttft: ExponentialHistogram = new ExponentialHistogram();
  readonly #inFlight = new Map<number, number>();
  #recent: Ended[] = [];
  #done = 0;
  #failed = 0;
  #stage = 0;
  #phase: 'warm-up' | 'sending' | 'draining' = 'warm-up';
  #startedAt: Seconds | null = null;
  #shownAt: Seconds | null = null;

  constructor(options: LoadOptions, environment: Environment) {
    super(options, environment);
    this.#stages = options.stages;
  }

  /** What will be sent, before it is. */
  announce(lines: readonly string[]): void {
    if (this.options.quiet) return;
    for (const line of lines) this.say(line);
  }

  batch(batch: EngineBatch): void {
    this.#startedAt ??= batch.from;
    if (this.giveUp.batch(batch))
      this.note('every request was refused from the first on: giving up');
    this.#inFlight.set(batch.worker, batch.inFlight);
    this.#stage = Math.max(this.#stage, batch.stage);
    let answered = 0;
    let tokens = 0;
    for (const request of batch.requests) {
      if (request.error !== null) this.#failed++;
      if (request.warmup) continue;
      this.#done++;
      if (request.error !== null) continue;
      answered++;
      tokens += request.outputTokens ?? request.outputs;
      if (request.firstOutputAt !== null) {
        this.#ttft.record(Math.max(0, request.firstOutputAt - request.startedAt));
      }
    }
    this.#recent.push({ at: batch.to, answered, tokens });
    this.#show(batch.to);
  }

  stage({ stage, what }: Parameters<EngineEvents['onStage']>[0]): void {
    this.#stage = Math.max(this.#stage, stage);
    if (what === 'begun') this.#phase = 'sending';
    if (what === 'sending-ended' && stage === this.#stages.length - 1) this.#phase = 'draining';
  }

  #show(now: Seconds): void {
    if (!this.options.progress || this.#startedAt === null) return;
    const { stderr } = this.environment;
    const every = this.rewrites ? PROGRESS_EVERY : PLAIN_PROGRESS_EVERY;
    const first = this.rewrites ? Number.NEGATIVE_INFINITY : this.#startedAt;
    if (now - (this.#shownAt ?? first) < every) return;
    this.#shownAt = now;
    this.showProgress(this.#line(now, this.#startedAt, stderr));
  }

  #line(now: Seconds, startedAt: Seconds, output: TextOutput): string {
    this.#recent = this.#recent.filter(({ at }) => at > now - RATE_WINDOW);
    const width = Math.min(RATE_WINDOW, now - startedAt);
    const sum = (of: (ended: Ended) => number) =>
      width < 1 ? null : this.#recent.reduce((total, ended) => total + of(ended), 0) / width;
    const durations = this.#stages.map(({ duration }) => duration);
    const counts = this.#stages.map(({ requests }) => requests);
    const total = (values: readonly (number | null)[]) =>
      values.every((value) => value !== null)
        ? values.reduce<number>((all, value) => all + (value ?? 0), 0)
        : null;
    const ttft = this.#ttft.count === 0 ? null : this.#ttft.buckets();
    return renderLoadProgress(
      {
        elapsed: now - startedAt,
        duration: total(durations),
        stage: {
          label: this.#stages[this.#stage]?.label ?? '',
          number: this.#stage + 1,
          of: this.#stages.length,
        },
        phase: this.#phase,
        inFlight: [...this.#inFlight.values()].reduce((all, one) => all + one, 0),
        done: this.#done,
        asked: total(counts),
        failed: this.#failed,
        requestRate: sum(({ answered }) => answered),
        tokenRate: sum(({ tokens }) => tokens),
        ttft:
          ttft === null
            ? null
            : { p50: histogramQuantile(ttft, 0.5), p99: histogramQuantile(ttft, 0.99) },
      },
      this.surface(output),
    );
  }
}
