import { hypothesesOf } from '../../analysis/hypotheses/hypotheses.ts';
import { setFlagsFromString } from 'node:v8';
import type { Sampler } from '../../../collectors/sampler/sampler.ts';
import { anchoredClock, takeAnchor } from '../../core/clock.ts';
import { TraceError } from '../../core/errors.ts';
import { combineExitCodes, EXIT, type ExitCode } from '../../core/exit-code.ts';
import { newTraceId } from '../../core/ids.ts';
import type { Clock, Finding, RunEnd, RunStart, Seconds } from '../../core/types.ts';
import { formatNumber, formatSeconds } from '../../core/units.ts';
import { cpuLimitOf } from '../../platform/cgroup-limits.ts';
import { describeHost, stealTime } from '../../platform/host.ts';
import { RECORDING_SCHEMA_VERSION } from '../../recording/format.ts';
import { buildReport } from '../../report/report.ts';
import { withGpus } from './gpu.ts';
import { NodeInspector } from './inspect.ts';
import { attachUsage, type AttachOptions, parseAttachOptions } from './options.ts';
import { type AttachPlan, openShared, probeTarget } from './probe.ts';
import { AttachScreen } from './screen.ts';
import { RestartWatch } from './restarts.ts';
import { openTree, type ProcessTreeWatch } from './tree.ts';

import type { Command, CommandContext, Environment, StopSignal } from '../command-line/command.ts';
import { openFlight } from '../flight/flight.ts';
import { exitCodeOfFindings } from '../watching/outcome.ts';
import { openRunSinks } from '../watching/run-sinks.ts';
import { openServerWatch, type ServerWatch } from '../server/watch.ts';
import { StopSignals } from '../watching/stop-signals.ts';
import { toolVersion } from '../version.ts';
import {
  ownCpuTime,
  runEnd,
  type Source,
  sourceOf,
  watch,
  type Watched,
} from '../watching/watch.ts';

/** `trace attach`: find the target, say what can be seen, watch it, report. */
export const attachCommand: Command = { ...attachUsage, run };

/** Share of a run's time. */
const UNSEEN_LIMIT = 0.5;
/** Cores. A block of 50 ms grows by a fifth when a fifth of a core is gone. */
const STEAL_WORTH_SAYING = 0.2;

async function run({ values, positionals, environment }: CommandContext): Promise<ExitCode> {
  const { loadConfig } = await import('../../config/config.ts');
  const config = await loadConfig(environment);
  const options = parseAttachOptions(values, positionals, config);
  const screen = new AttachScreen(options, environment);
  if (options.target.by === 'list') return screen.showCandidates();
  sleepWithoutCompacting();
  const inspector = new NodeInspector(options, environment, screen);
  const shared = openShared();
  // From here on something may have to be taken back before we end.
  const stops = new StopSignals(environment);
  try {
    const plan = await probeTarget(options, inspector, shared);
    try {
      const tree = await openTree(plan, { options, environment, screen, shared });
      try {
        const seen = await withGpus(plan, { tree, options, environment });
        screen.announce(seen, tree);
        const context = { options, environment, screen, inspector, stops };
        const restarts = restartsOf(plan, { tree, options, screen });
        const outcome = await runPlan(
          { plan: seen, tree },
          { ...context, verb: 'attach', name: String(plan.found.target.pid), restarts },
        );
        return exitCode(outcome, { options, signal: stops.received });
      } finally {
        await tree.close();
      }
    } finally {
      await plan.sampler?.close();
    }
  } finally {
    shared.exits.close();
    await inspector.close();
    stops.close();
  }
}

/**
 * A process that mostly sleeps looks to V8 like one whose heap should be compacted and whose compiled code dropped every few seconds: 0.3 %
 * of a core to save 1 MiB, and the code is compiled anew. The first flag ends that in workers, which are made after it, the second here.
 */
export function sleepWithoutCompacting(): void {
  setFlagsFromString('--no-memory-reducer');
  setFlagsFromString('--no-incremental-marking');
}

/** What a run is made with, beside its plan. */
interface RunContext {
  readonly options: AttachOptions;
  readonly environment: Environment;
  readonly screen: AttachScreen;
  readonly inspector: NodeInspector;
  readonly stops: Pick<StopSignals, 'listen'>;
  readonly verb: 'attach' | 'run';
  /** What the default name of the recording's folder ends with. */
  readonly name: string;
  /** Ends the run whatever is gone by then, and says why it ended; without it `options.duration` or the target's end does. */
  readonly until?: Promise<Watched['reason']>;
  /** What is watched beside the plan's collectors. */
  readonly sources?: readonly Source[];
  /** What finds the target again when it has ended; then the run ends when that gives up. */
  readonly restarts?: RestartWatch | null;
}

function restartsOf(
  plan: AttachPlan,
  context: {
    readonly tree: ProcessTreeWatch;
    readonly options: AttachOptions;
    readonly screen: AttachScreen;
  },
): RestartWatch | null {
  const { target, followRestarts: limit } = context.options;
  if (limit === null) return null;
  return new RestartWatch(plan.found.target, { ...context, target, limit });
}

/** What is watched: the target, and whatever else. */
interface Watching {
  readonly plan: AttachPlan;
  readonly tree: ProcessTreeWatch;
}

/** How a run ended and what it came to. */
interface RunOutcome {
  readonly findings: readonly Finding[];
  readonly watched: Watched;
  readonly end: RunEnd;
}

/** Watches what the plan says into its sinks and prints the report. Throws ERR_TARGET_GONE when nothing was observed. */
export async function runPlan({ plan, tree }: Watching, context: RunContext): Promise<RunOutcome> {
  const { options, environment, screen, inspector, stops, until, restarts = null } = context;
  const traceId = newTraceId();
  const server = await openServerWatch(options.server, {
    pids: tree.targets.map(({ pid }) => pid),
    mayBecome: context.verb === 'run',
    traceId,
    environment,
    screen,
  });
  const clock = anchoredClock(takeAnchor());
  const start = { ...runStart({ plan, tree, server }, context, clock), traceId };
  const setup = {
    recording: options.recording,
    otlp: options.otlp,
    name: context.name,
    environment,
    screen,
    clock,
    metrics: server.metrics,
  };
  const { trigger } = options;
  const sinks = await (trigger === null
    ? openRunSinks(start, setup)
    : openFlight(start, { ...setup, trigger }));
  const startupCpu = ownCpuTime();
  const stolenBefore = stealTime();
  const seen = await watch({
    sources: [
      ...plan.collectors.map((collector) => sourceOf(collector, plan.found.target)),
      ...tree.sources,
      ...server.sources,
      ...(context.sources ?? []),
      ...(restarts === null ? [] : [restarts]),
    ],
    joining: (add) => add(tree.source(add)),
    endsWith: () => (restarts ?? tree).isOver(),
    sinks: [...sinks.all, screen],
    clock,
    since: start.startedAt,
    duration: until ?? options.duration,
    onStop: (stop) => stops.listen(stop),
    onTick: (elapsed) => screen.tick(elapsed),
  });
  const watched = until === undefined ? seen : { ...seen, reason: await until };
  screen.endProgress();
  const left = await inspector.close();
  if (left !== null) screen.problem(left);
  const steal = stealProblem(stealTime() - stolenBefore, watched.to - watched.from);
  if (steal !== null) screen.problem(steal);
  const samplers = [plan, ...tree.plans].flatMap(({ sampler }) => sampler ?? []);
  const total = (of: (sampler: Sampler) => number): number =>
    samplers.reduce((sum, sampler) => sum + of(sampler), 0);
  const end = runEnd(watched, {
    startupCpu,
    targetPaused: total(({ targetPaused }) => targetPaused),
    samples: total(({ statistics }) => statistics.samples),
    late: total(({ statistics }) => statistics.late),
    dropped: total(({ statistics }) => statistics.dropped),
    unbounded: options.duration === null,
  });
  if (hasTooFewSamples(watched, end)) screen.problem(unseenProblem(watched));
  const { view, findings, extra } = await sinks.conclude(end);
  const report = buildReport(view, findings, {
    ...extra,
    hypotheses: hypothesesOf(view, findings, { recording: extra.recording }),
    problems: screen.problems,
  });
  screen.showReport(report);
  if (watched.observed === 0 && watched.reason === 'target-gone') {
    throw new TraceError(
      'ERR_TARGET_GONE',
      `pid ${plan.found.target.pid} ended before anything was observed`,
      { exitCode: EXIT.notFound },
    );
  }
  return { findings, watched, end };
}

function runStart(
  { plan, tree, server }: Watching & { readonly server: ServerWatch },
  { options, verb }: RunContext,
  clock: Clock,
): Omit<RunStart, 'traceId'> {
  return {
    schemaVersion: RECORDING_SCHEMA_VERSION,
    toolVersion: toolVersion(),
    command: verb,
    startedAt: clock.now(),
    targets: tree.targets,
    collectors: [...plan.infos, ...tree.infos, ...server.infos],
    settings: {
      lag_threshold_s: options.lagThreshold,
      ...(options.duration === null ? {} : { duration_s: options.duration }),
      ...hostSettings(plan.found.target.pid),
    },
  };
}

/** A sampler that was kept from a core for most of the run has seen too little for its silence to mean anything. */
function hasTooFewSamples({ from, to, unseen }: Watched, end: RunEnd): boolean {
  return end.samples > 0 && unseen > (to - from) * UNSEEN_LIMIT;
}

function unseenProblem({ from, to, unseen }: Watched): string {
  return `not valid: the sampler did not get a core for ${formatSeconds(unseen)} of ${formatSeconds(to - from)}, so what was not found may have been there`;
}

/** What a reader of the recording needs to judge its numbers. */
function hostSettings(pid: number): Readonly<Record<string, string | number>> {
  const host = describeHost();
  const limit = cpuLimitOf(pid);
  return {
    host_kernel: host.kernel,
    host_architecture: host.architecture,
    host_cores: host.cores,
    host_memory_bytes: host.memory,
    ...(limit === null ? {} : { target_cpu_limit_cores: limit }),
  };
}

/** What the hypervisor took from us: time that nobody in this machine can see, and that looks like work or like blocking. */
function stealProblem(stolen: Seconds, elapsed: Seconds): string | null {
  const share = stolen / Math.max(elapsed, 1e-9);
  return share < STEAL_WORTH_SAYING
    ? null
    : `the hypervisor gave ${formatNumber(share)} cores' time to others during the run: durations may be too long`;
}

function exitCode(
  { findings, watched, end }: RunOutcome,
  { options, signal }: { options: AttachOptions; signal: StopSignal | null },
): ExitCode {
  const codes: ExitCode[] = hasTooFewSamples(watched, end) ? [EXIT.invalid] : [];
  if (!options.exitZero) codes.push(exitCodeOfFindings(findings));
  if (signal === 'SIGTERM') codes.push(EXIT.terminated);
  // Ctrl-C is the normal end of a run without a duration.
  else if (signal === 'SIGINT' && options.duration !== null) codes.push(EXIT.interrupted);
  return combineExitCodes(codes);
}
