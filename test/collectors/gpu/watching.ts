import { GpuCollector, type GpuOptions } from '../../../collectors/gpu/gpu.ts';
import { anchoredClock, takeAnchor } from '../../../src/core/clock.ts';
import type {
  Attributes,
  Availability,
  CollectorInfo,
  Gap,
  Event,
  Observation,
  ProcessTarget,
  Sample,
  Seconds,
} from '../../../src/core/types.ts';
import type { FakeSmi } from '../../nvidia-smi/fake-smi.ts';

const TARGET: ProcessTarget = { kind: 'process', pid: process.pid, startTicks: 0 };

/** Short, so that a test need not wait for what a person would. */
const LIMITS = {
  answer: 2,
  probe: 2,
  silence: 1.2,
  processes: 1,
  details: 1,
  backOff: 0.1,
  longestBackOff: 0.2,
} as const;

/** What a collector saw. */
export class Seen {
  readonly all: Observation[] = [];
  availability: Availability = { available: true };
  blindSpots: readonly CollectorInfo[] = [];
  /** From the end of the run to that of the collector. */
  ending: Seconds = 0;

  get gaps(): readonly Gap[] {
    return this.all.filter((one) => one.kind === 'gap');
  }

  get events(): readonly Event[] {
    return this.all.filter((one) => one.kind === 'event');
  }

  samples(metric: string, attributes: Attributes = {}): readonly Sample[] {
    return this.all.filter(
      (one): one is Sample =>
        one.kind === 'sample' &&
        one.metric === metric &&
        Object.entries(attributes).every(([key, value]) => one.attributes?.[key] === value),
    );
  }

  /** The last value of each series of a metric that has one of these attributes. */
  last(metric: string, attributes: Attributes = {}): number | undefined {
    return this.samples(metric, attributes).at(-1)?.value;
  }

  values(metric: string, attributes: Attributes = {}): readonly number[] {
    return this.samples(metric, attributes).map(({ value }) => value);
  }
}

export interface WatchOptions {
  readonly pids?: readonly number[];
  readonly visible?: readonly string[];
  readonly sameView?: boolean;
  readonly limits?: GpuOptions['limits'];
  /** Called at each observation. */
  readonly during?: (seen: Seen) => void;
}

/** Runs the collector until `until` says that enough was seen, or for 20 s. */
export async function watchGpus(
  smi: Pick<FakeSmi, 'program'>,
  until: (seen: Seen) => boolean,
  { pids = [], visible = [], sameView = true, limits = {} }: WatchOptions = {},
): Promise<Seen> {
  const holder = {
    processes: () => new Set(pids),
    visible: () => visible,
    sameView,
  };
  const collector = new GpuCollector({
    program: smi.program,
    holder,
    limits: { ...LIMITS, ...limits },
  });
  const seen = new Seen();
  seen.availability = await collector.probe();
  seen.blindSpots = collector.blindSpots;
  if (!seen.availability.available) return seen;
  const clock = anchoredClock(takeAnchor());
  const controller = new AbortController();
  const timer = setTimeout(() => controller.abort(), 20_000);
  const checks = setInterval(() => {
    if (until(seen)) controller.abort();
  }, 20);
  let ended = 0;
  controller.signal.addEventListener('abort', () => (ended = clock.mono()));
  for await (const one of collector.observe(TARGET, { signal: controller.signal, clock }))
    seen.all.push(one);
  seen.ending = clock.mono() - ended;
  clearTimeout(timer);
  clearInterval(checks);
  return seen;
}
