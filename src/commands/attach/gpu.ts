import { existsSync } from 'node:fs';
import { monotonicNow } from '../../core/clock.ts';
import type { Collector, CollectorInfo, Seconds } from '../../core/types.ts';
import { descendantsOf } from '../../platform/process-tree.ts';
import { findProgram } from '../../platform/find-program.ts';
import { sharesNamespaces, usesCuda, visibleDevices } from '../../platform/visible-devices.ts';
import type { AttachOptions } from './options.ts';
import type { AttachPlan } from './probe.ts';
import type { ProcessTreeWatch } from './tree.ts';
import type { Environment } from '../command-line/command.ts';

/** Whether the GPUs are watched beside a target, and which of them are its. */

/** The GPUs beside a run, and what of them cannot be seen. */
export interface BesideGpus {
  readonly collector: Collector | null;
  readonly infos: readonly CollectorInfo[];
  /** What the collector will do, for --verbose. */
  readonly details: readonly string[];
}

/** What the GPUs are looked for by. */
export interface GpuSeeker {
  /** Null: where there is one and the target uses it. */
  readonly wanted: AttachOptions['gpu'];
  readonly environment: Pick<Environment, 'env'>;
  /** The processes that are watched: theirs are the GPUs, and those of all below them. Empty: nobody's in particular. */
  readonly roots: () => readonly number[];
  /** What these are, as far as that is known: an inference engine uses a GPU where there is one. */
  readonly roles: readonly (string | null)[];
}

const NAME = 'gpu';
const NONE: BesideGpus = { collector: null, infos: [], details: [] };
/** Where drivers put it that is not on everybody's PATH: WSL, containers of NVIDIA's toolkit and of GKE. */
const PLACES = ['/usr/bin', '/usr/lib/wsl/lib', '/usr/local/nvidia/bin', '/opt/nvidia/bin'];
const ENGINE = /^(?:vLLM|SGLang|TensorRT-LLM|TGI|Dynamo|Triton)\b/;
/** Processes come and go; who is there now is looked up at most this often. */
const LOOK_EVERY: Seconds = 1;

/** Finds nvidia-smi and asks it once what there is. On a machine without one nothing is said, unless somebody asks or the target has CUDA loaded. */
export async function openGpus(seeker: GpuSeeker): Promise<BesideGpus> {
  const { wanted } = seeker;
  if (wanted === false || (wanted === null && seeker.roots().length === 0)) return NONE;
  const holder = holderOf(seeker.roots);
  const hasCuda = [...holder.processes()].some((pid) => usesCuda(pid) === true);
  const program = findSmi(seeker.environment);
  if (program === null) {
    const reason = `nvidia-smi is neither on PATH nor in ${PLACES.join(', ')}`;
    const remedy =
      'Install the driver’s utilities; in a container: NVIDIA_DRIVER_CAPABILITIES=compute,utility';
    return wanted === true || hasCuda ? unavailable(reason, remedy) : NONE;
  }
  // Most machines have none: they need not load it.
  const { GpuCollector } = await import('../../../collectors/gpu/gpu.ts');
  const collector = new GpuCollector({ program, holder });
  const isUser =
    hasCuda ||
    holder.visible().length > 0 ||
    seeker.roles.some((role) => role !== null && ENGINE.test(role));
  if (wanted !== true && !isUser && (await collector.listsTarget()) !== true) {
    await collector.close();
    return NONE;
  }
  const availability = await collector.probe();
  if (!availability.available) {
    await collector.close();
    // A driver that is not loaded is no news of a target that has none of it.
    const isNews = wanted === true || hasCuda;
    return isNews ? unavailable(availability.reason, availability.remedy) : NONE;
  }
  const info: CollectorInfo = { name: NAME, available: true, reason: null, remedy: null };
  const details = availability.detail === undefined ? [] : [availability.detail];
  return { collector, infos: [info, ...collector.blindSpots], details };
}

/** The plan with the GPUs of its processes in it. */
export async function withGpus(
  plan: AttachPlan,
  {
    tree,
    options,
    environment,
  }: {
    readonly tree: ProcessTreeWatch;
    readonly options: Pick<AttachOptions, 'gpu'>;
    readonly environment: Pick<Environment, 'env'>;
  },
): Promise<AttachPlan> {
  const { collector, infos, details } = await openGpus({
    wanted: options.gpu,
    environment,
    roots: () => tree.targets.map(({ pid }) => pid),
    roles: tree.targets.map(({ role }) => role),
  });
  return {
    ...plan,
    collectors: collector === null ? plan.collectors : [...plan.collectors, collector],
    infos: [...plan.infos, ...infos],
    details: [...plan.details, ...details],
  };
}

function unavailable(reason: string, remedy: string | null): BesideGpus {
  return { ...NONE, infos: [{ name: NAME, available: false, reason, remedy }] };
}

/** nvidia-smi, also where it is not on PATH; null where there is none. */
export function findSmi({ env }: Pick<Environment, 'env'>): string | null {
  return (
    findProgram('nvidia-smi', env['PATH']) ??
    PLACES.map((folder) => `${folder}/nvidia-smi`).find((file) => existsSync(file)) ??
    null
  );
}

/** Hides every GPU, in CUDA's way; a helper of a server may be started so. */
const NO_GPU: ReadonlySet<string> = new Set(['', '-1', 'NoDevFiles', 'none', 'void']);

function holderOf(roots: () => readonly number[]): {
  processes(): ReadonlySet<number>;
  visible(): readonly string[];
  readonly sameView: boolean;
} {
  let processes: ReadonlySet<number> = new Set();
  let lookedAt = Number.NEGATIVE_INFINITY;
  let variables = new Map<number, string | null>();
  const look = (): ReadonlySet<number> => {
    if (monotonicNow() - lookedAt < LOOK_EVERY) return processes;
    lookedAt = monotonicNow();
    const tops = roots();
    processes = new Set([
      ...tops,
      ...tops.flatMap((pid) => descendantsOf(pid).map(({ stat }) => stat.pid)),
    ]);
    return processes;
  };
  return {
    processes: look,
    visible() {
      variables = new Map(
        [...look()].map((pid) => [
          pid,
          variables.has(pid) ? (variables.get(pid) ?? null) : visibleDevices(pid),
        ]),
      );
      const set = [...variables.values()].filter((value) => value !== null);
      return [...new Set(set.map((value) => value.trim()))].filter((value) => !NO_GPU.has(value));
    },
    sameView: roots().every((pid) => sharesNamespaces(pid) === true),
  };
}
