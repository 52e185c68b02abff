import { LOCK_LOOK } from '../../../collectors/python/locks/lock-watch.ts';
import { type Look, PythonWatch } from '../../../collectors/python/python-watch.ts';
import { SharedPython } from '../../../collectors/python/shared-python.ts';
import { CONDITION_LOOK } from '../../../collectors/python/condition-watch.ts';
import { POOL_LOOK } from '../../../collectors/python/pool-watch.ts';
import { TASK_LOOK } from '../../../collectors/python/task-watch.ts';
import { processCollector } from '../../../collectors/process/process.ts';
import { HEAP_LOOK } from '../../../collectors/python/heap-watch.ts';
import { Sampler } from '../../../collectors/sampler/sampler.ts';
import { SamplingCrew } from '../../../collectors/sampler/sampling-crew.ts';
import type { StackSource } from '../../../collectors/sampler/stack-source.ts';
import { COLLECTOR } from '../../core/collector-name.ts';
import { TraceError } from '../../core/errors.ts';
import { EXIT } from '../../core/exit-code.ts';
import type { Availability, Collector, CollectorInfo, ProcessTarget } from '../../core/types.ts';
import { ExitListener } from '../../platform/exit-listener.ts';
import { type AccessJudgement, judgeAccess } from '../../platform/permission.ts';
import { detectRuntime, type Runtime } from '../../platform/runtime.ts';
import { findTarget, type FoundTarget } from '../../platform/target.ts';
import { findMatches, noMatchError } from '../../platform/target-match.ts';
import { workerProcesses } from '../../platform/worker-processes.ts';
import type { NodeInspector } from './inspect.ts';
import type { AttachOptions } from './options.ts';

/** Deciding, before anything starts, what of a target can be seen and why not the rest. */

/** Everything known of a run before it begins. */
export interface AttachPlan {
  readonly found: FoundTarget;
  readonly runtime: Runtime;
  /** Only what the report says of rights; collectors have judged for themselves. */
  readonly messages: readonly string[];
  readonly collectors: readonly Collector<ProcessTarget>[];
  /** What those that look at a Python process now and then have in common. */
  readonly python: SharedPython;
  readonly sampler: Sampler | null;
  readonly infos: readonly CollectorInfo[];
  /** What the available collectors will do, for --verbose. */
  readonly details: readonly string[];
}

/** What probing depends on. */
export type ProbeOptions = Pick<
  AttachOptions,
  'target' | 'lagThreshold' | 'recording' | 'requireStacks'
> &
  // A run with triggers is left on.
  Partial<Pick<AttachOptions, 'trigger'>>;

/** What the processes of one run share. */
export interface Shared {
  readonly exits: ExitListener;
  /** One thread samples all of them. */
  readonly crew: SamplingCrew;
}

/** Nothing of it runs before it is used; `exits` wants to be closed. */
export function openShared(): Shared {
  return { exits: new ExitListener(), crew: new SamplingCrew() };
}

/** Changes nothing in the target but what `--inspect` asks for. Throws a TraceError when it cannot be attached to. */
export async function probeTarget(
  options: ProbeOptions,
  inspector: NodeInspector,
  shared: Shared = openShared(),
): Promise<AttachPlan> {
  const { target: selector } = options;
  const found = findTarget(
    selector.by === 'match' && selector.all !== true
      ? { match: selector.pattern }
      : { pid: pidsOf(selector)[0] ?? '' },
  );
  const { target } = found;
  const runtime = detectRuntime(target.pid);
  const access = judgeAccess(target);
  const process = processCollector({ exits: shared.exits });
  const infos = [toInfo('process', await process.probe(target))];
  const { crew } = shared;
  const loop = await probeLoop(target, { runtime, access, options, inspector, crew });
  const inspected = await inspector.infos(target, runtime);
  infos.push(...loop.infos, ...inspected);
  const { sampler } = loop;
  if (options.requireStacks) {
    try {
      requireStacks(found, infos, access);
    } catch (error) {
      await sampler?.close();
      throw error;
    }
  }
  const { trigger = null } = options;
  const python = new SharedPython({ isLeftOn: trigger !== null });
  const looks = [
    LOCK_LOOK,
    TASK_LOOK,
    POOL_LOOK,
    CONDITION_LOOK,
    ...(sampler === null ? [] : [HEAP_LOOK]),
  ];
  const watches = await pythonWatches({ target, runtime, python }, looks);
  return {
    found,
    runtime,
    messages: access.messages,
    collectors: [
      process,
      ...(sampler === null ? [] : [sampler]),
      ...inspector.collectors,
      ...watches,
    ],
    python,
    sampler,
    infos,
    details: loop.details,
  };
}

/**
 * What looks at a Python process now and then. Where it cannot, stacks cannot be read either, and that is said of them.
 */
export async function pythonWatches(
  {
    target,
    runtime,
    python,
  }: {
    readonly target: ProcessTarget;
    readonly runtime: Runtime;
    readonly python: SharedPython;
  },
  looks: readonly Look[],
): Promise<readonly Collector<ProcessTarget>[]> {
  if (runtime.name !== 'python') return [];
  const found: Collector<ProcessTarget>[] = [];
  for (const look of looks) {
    const watch = new PythonWatch(look, python);
    if ((await watch.probe(target)).available) found.push(watch);
  }
  return found;
}

/** The pids a selector names, the first target's first; of `--all` those that match now. Throws where none does. */
export function pidsOf(selector: AttachOptions['target']): readonly number[] {
  if (selector.by === 'list') return [];
  if (selector.by === 'pid') return [selector.pid, ...(selector.others ?? [])];
  const matches = findMatches(selector.pattern);
  if (matches.length === 0) throw noMatchError(selector.pattern);
  return matches.map(({ pid }) => pid);
}

interface LoopProbe {
  readonly sampler: Sampler | null;
  readonly infos: readonly CollectorInfo[];
  readonly details: readonly string[];
}

async function probeLoop(
  target: ProcessTarget,
  {
    runtime,
    access,
    options,
    inspector,
    crew,
  }: {
    crew: SamplingCrew;
    runtime: Runtime;
    access: AccessJudgement;
    options: ProbeOptions;
    inspector: NodeInspector;
  },
): Promise<LoopProbe> {
  const both = (availability: Availability): LoopProbe => ({
    sampler: null,
    infos: [toInfo('event-loop', availability), toInfo('stacks', availability)],
    details: [],
  });
  if (!access.memory.available) return both(access.memory);
  const foreign =
    runtime.name === 'python' || runtime.name === 'node' ? null : noLoopReader(runtime);
  if (runtime.name === 'native' || runtime.name === 'unknown') return both(noLoopReader(runtime));
  let stacks: Availability = foreign ?? {
    available: true,
    detail: 'Python frames, read from memory',
  };
  let stackSource: StackSource | null = null;
  if (runtime.name === 'node') {
    const opened = await inspector.openStacks(target, runtime);
    if ('available' in opened) stacks = opened;
    else {
      stackSource = opened;
      stacks = { available: true, detail: opened.description };
    }
  }
  const { lagThreshold: threshold } = options;
  const kind = runtime.name === 'python' || runtime.name === 'node' ? runtime.name : 'other';
  const sampler = new Sampler({
    runtime: kind,
    threshold,
    raw: options.recording.raw,
    stackSource,
    crew,
  });
  const loop = await sampler.probe(target);
  if (!sampler.isOpen) {
    await stackSource?.close();
    return both(loop);
  }
  if (kind === 'python' && !sampler.readsTurns) stacks = loop;
  return {
    sampler,
    infos: [toInfo('event-loop', loop), toInfo('stacks', stacks)],
    details: [loop, stacks].flatMap((one) => (one.available ? [one.detail ?? ''] : [])),
  };
}

/** So many are named; a server has about as many workers as cores. */
const WORKERS_NAMED = 8;

/** Why a master's silence says nothing where its workers are not watched; empty for a process without workers. */
export function workersInfo(pid: number): readonly CollectorInfo[] {
  const workers = workerProcesses(pid).map((worker) => worker.pid);
  const [busiest] = workers;
  if (busiest === undefined) return [];
  const more = workers.length > WORKERS_NAMED ? ` and ${workers.length - WORKERS_NAMED} more` : '';
  const named = workers.slice(0, WORKERS_NAMED).join(', ') + more;
  const reason =
    `the work of a server with workers is done in them: pid ${pid} started ${named}, ` +
    `of the same program, and only pid ${pid} is watched`;
  const remedy = `trace attach ${pid} --subprocesses\ntrace attach ${busiest}${workers.length > 1 ? '  # has used the most CPU of them' : ''}`;
  return [toInfo(COLLECTOR.workers, { available: false, reason, remedy })];
}

function noLoopReader(runtime: Runtime): Extract<Availability, { available: false }> {
  const reason =
    runtime.reason ??
    (runtime.name === 'native'
      ? 'it runs neither CPython nor Node, so there is no event loop that can be read'
      : `iterations of ${runtime.name}'s event loop cannot be told apart (those of CPython 3.8-3.14 and Node 20 or newer can)`);
  return { available: false, reason, remedy: null };
}

function requireStacks(
  found: FoundTarget,
  infos: readonly CollectorInfo[],
  access: AccessJudgement,
): void {
  const stacks = infos.find((info) => info.name === 'stacks');
  if (stacks === undefined || stacks.available) return;
  const denied = !access.memory.available;
  throw new TraceError(
    denied ? 'ERR_PERMISSION' : 'ERR_STACKS_UNAVAILABLE',
    `stacks of pid ${found.target.pid} cannot be read: ${stacks.reason ?? 'for an unknown reason'}`,
    {
      exitCode: denied ? EXIT.permission : EXIT.unsupported,
      ...(stacks.remedy === null ? {} : { remedy: stacks.remedy }),
    },
  );
}

function toInfo(name: string, availability: Availability): CollectorInfo {
  return availability.available
    ? { name, available: true, reason: null, remedy: null }
    : { name, available: false, reason: availability.reason, remedy: availability.remedy };
}
