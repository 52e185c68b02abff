import { GPU_METRIC } from '../../src/core/semconv-gpu.ts';
import type {
  Availability,
  Bytes,
  Collector,
  CollectorInfo,
  Metric,
  Observation,
  ObserveContext,
  Target,
  Seconds,
} from '../../src/core/types.ts';
import { formatBytes } from '../../src/core/units.ts';
import { type Catalog, discover, type Discovery } from './catalog.ts';
import { Devices, type Holder } from './devices.ts';
import { Feed } from './feed.ts';
import { GPU_LIMITS, type GpuLimits } from './limits.ts';
import { GpuRun, NAME } from './run.ts';
import { type GpuProcess, parseProcesses, PROCESS_QUERY } from './processes.ts';
import { parseList } from './slices.ts';
import { Smi } from './smi.ts';

/**
 * NVIDIA GPUs through nvidia-smi: one that stays and prints a line a second for each GPU, and beside it, seldom, one for the list of processes and one
 * for what only its XML tells. One that hangs is killed and not waited for, and none is started while it is still there.
 */

/** Observations that may wait to be taken: some seconds of 64 GPUs. */
const FEED_LIMIT = 8192;
/** So much memory is not taken with no process there to take it. */
const MEMORY_OF_NOBODY: Bytes = 256 * 2 ** 20;

export interface GpuOptions {
  /** nvidia-smi: a path. */
  readonly program: string;
  readonly holder: Holder;
  readonly limits?: Partial<GpuLimits>;
}

export class GpuCollector implements Collector {
  readonly name: string = NAME;
  readonly metrics: readonly Metric[] = Object.values(GPU_METRIC);
  readonly #smi: Smi;
  readonly #holder: Holder;
  readonly #devices: Devices;
  readonly #limits: GpuLimits;
  #catalog: Catalog | null = null;
  /** The first list of processes: null where it could not be had. */
  #listed: readonly GpuProcess[] | null = null;
  #failure: Extract<Discovery, { ok: false }> | null = null;

  constructor({ program, holder, limits = {} }: GpuOptions) {
    this.#smi = new Smi(program);
    this.#holder = holder;
    this.#devices = new Devices(holder);
    this.#limits = { ...GPU_LIMITS, ...limits };
  }

  /** Whether a process of the target has a context on a GPU now; null where no list could be had. Starts nvidia-smi once. */
  async listsTarget(): Promise<boolean | null> {
    const answer = await this.#smi.ask(PROCESS_QUERY, this.#limits.probe);
    this.#listed = answer.kind === 'answer' ? parseProcesses(answer.text) : null;
    const own = this.#holder.processes();
    return this.#listed?.some(({ pid }) => own.has(pid)) ?? null;
  }

  async probe(): Promise<Availability> {
    const found = await this.#discover(this.#limits.probe);
    if (!found.ok) {
      this.#failure = found;
      // It may answer later: the run tries again, and says what it missed.
      const isLost = found.fault !== null && found.fault.fault !== 'driver';
      if (found.hangs || isLost) return { available: true, detail: found.why };
      return { available: false, reason: found.why, remedy: 'nvidia-smi' };
    }
    if (this.#listed === null) await this.listsTarget();
    // Before the run: from then on the samples say it.
    for (const _ of this.#devices.ofProcesses(this.#listed ?? [], 0));
    const { shown, all } = this.#devices;
    const which = shown.map(({ index, name }) => `${index ?? '?'} (${name ?? 'GPU'})`).join(', ');
    const whose = this.#devices.unknownScope === null ? 'those of the target' : 'all';
    const driver = all[0]?.driver ?? 'unknown';
    return {
      available: true,
      detail: `GPUs through nvidia-smi, driver ${driver}: ${which} of ${all.length}, ${whose}`,
    };
  }

  /** Once probed: what of the GPUs cannot be seen although they can. */
  get blindSpots(): readonly CollectorInfo[] {
    const { shown, all, unknownScope } = this.#devices;
    const spots: CollectorInfo[] = [];
    const say = (name: string, reason: string, remedy: string | null): void => {
      spots.push({ name, available: false, reason, remedy });
    };
    const sliced = shown.filter(({ hasMig }) => hasMig);
    if (sliced.length > 0) {
      const which = sliced.map(({ index }) => index ?? '?').join(', ');
      say(
        'gpu-utilization',
        `GPU ${which} is divided by MIG, and nvidia-smi gives no utilisation then; memory is read by slice`,
        'DCGM has it by slice (DCGM_FI_PROF_GR_ENGINE_ACTIVE)',
      );
    }
    const processes = this.#whyNoProcesses();
    if (processes !== null) say('gpu-processes', processes.reason, processes.remedy);
    if (unknownScope !== null && all.length > 1) {
      say(
        'gpu-of-target',
        `which of the ${all.length} GPUs are the target's cannot be told, so all are shown: ${unknownScope}`,
        null,
      );
    }
    return spots;
  }

  #whyNoProcesses(): { readonly reason: string; readonly remedy: string | null } | null {
    if (this.#catalog === null) return null;
    const list = this.#listed;
    if (list === null) return { reason: 'nvidia-smi gave no list of processes', remedy: null };
    const own = this.#holder.processes();
    const seen = list.filter(({ pid }) => own.has(pid));
    if (seen.length > 0) {
      return seen.some(({ memory }) => memory !== null)
        ? null
        : { reason: 'the driver does not tell what memory a process has', remedy: null };
    }
    const taken = this.#devices.all.reduce((sum, { memoryUsed }) => sum + (memoryUsed ?? 0), 0);
    if (list.length > 0 || taken < MEMORY_OF_NOBODY) return null;
    return {
      reason:
        `nvidia-smi lists no process although ${formatBytes(taken)} of GPU memory are taken: ` +
        'it lists those of its own pid namespace only, and the target is in another, or trace is in a container',
      remedy:
        'Run trace on the host, or with the host’s pids (docker run --pid=host, hostPID: true)',
    };
  }

  async *observe(_target: Target, context: ObserveContext): AsyncIterable<Observation> {
    const feed = new Feed<Observation>(FEED_LIMIT);
    const run = new GpuRun({
      smi: this.#smi,
      devices: this.#devices,
      limits: this.#limits,
      feed,
      context,
      catalog: this.#catalog,
      failure: this.#failure,
      discover: () => this.#discover(this.#limits.answer),
    });
    // What is asked just now may hang: it must not hold up the end of the run.
    context.signal.addEventListener('abort', () => void this.#smi.close(), { once: true });
    const finished = run.go().finally(() => feed.end());
    yield* feed;
    await finished;
    await this.#smi.close();
    const to = context.clock.now();
    if (feed.dropped > 0) {
      const detail = `${feed.dropped} readings more than could be taken`;
      yield { kind: 'gap', from: to, to, collector: NAME, reason: 'dropped', detail };
    }
  }

  /** Ends what runs. Safe to call twice. */
  close(): Promise<void> {
    return this.#smi.close();
  }

  async #discover(limit: Seconds): Promise<Discovery> {
    const found = await discover(this.#smi, limit);
    if (!found.ok) return found;
    this.#catalog = found.catalog;
    const { gpus } = found.catalog;
    // UUIDs of slices are in this list alone.
    const list = gpus.some(({ hasMig }) => hasMig) ? await this.#smi.ask(['-L'], limit) : null;
    this.#devices.identify(gpus, list?.kind === 'answer' ? parseList(list.text) : []);
    return found;
  }
}
