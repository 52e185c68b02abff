import { availableParallelism, hostname } from 'node:os';
import { COLLECTOR } from '../core/collector-name.ts';
import { type ClockAnchor, anchoredClock, takeAnchor } from '../core/clock.ts';
import { newTraceId } from '../core/ids.ts';
import type { LoadResult } from '../core/load-types.ts';
import { loadMetrics } from '../core/semconv-load.ts';
import type { CollectorInfo, RunEnd, RunStart, Seconds } from '../core/types.ts';
import type { EngineEvents, RunningLoad, StartLoad } from '../load/contracts.ts';
import { LoadObserver } from '../load/observe/observer.ts';
import { withLoadResult } from '../load/observe/read-back.ts';
import { loadSummary } from '../load/observe/summary.ts';
import type { LoadPlan } from '../load/plan.ts';
import { resultMeta } from '../load/results/builder.ts';
import { describeHost } from '../platform/host.ts';
import { RECORDING_SCHEMA_VERSION } from '../recording/format.ts';
import type { Environment } from './command.ts';
import { type Beside, openBeside } from './load-beside.ts';
import type { LoadRun, LoadRunScreen, LoadSettings } from './load-settings.ts';
import { finish, openSinks, type Sinks, wholeView } from './run-sinks.ts';
import { StopSignals } from './stop-signals.ts';
import { toolVersion } from './version.ts';
import { ownCpuTime, watch, type Watched } from './watch.ts';

/** Running a plan: engine, sinks, what is watched beside it, and the result. */

/** What a run happens in. */
export interface LoadContext {
  readonly environment: Environment;
  readonly screen: LoadRunScreen;
  /** The engine; tests give another one. */
  readonly startLoad?: StartLoad;
}

/**
 * Runs the plan to its end, or to the first stop signal (it then drains; a second one ends at once, a third ends trace). Throws a TraceError
 * when nothing could be sent at all or a folder that the user named cannot be used; trouble beside the requests goes to the screen.
 */
export async function runLoad(
  plan: LoadPlan,
  settings: LoadSettings,
  context: LoadContext,
): Promise<LoadRun> {
  // From here on there is something to write down or to take back before we end.
  const stops = new StopSignals(context.environment);
  const beside = await openBeside(settings, context);
  try {
    return await runBeside({ plan, settings, context, beside, stops });
  } finally {
    await beside.close();
    stops.close();
  }
}

interface Run {
  readonly plan: LoadPlan;
  readonly settings: LoadSettings;
  readonly context: LoadContext;
  readonly beside: Beside;
  readonly stops: StopSignals;
}

async function runBeside(run: Run): Promise<LoadRun> {
  const { plan, settings, context, beside, stops } = run;
  const { environment, screen } = context;
  const startLoad = context.startLoad ?? (await import('../load/engine/engine.ts')).startLoad;
  const anchor = takeAnchor();
  const clock = anchoredClock(anchor);
  const start = runStart(run, anchor);
  const sinks = await openSinks(start, {
    ...settings,
    name: folderName(plan),
    environment,
    screen,
    clock,
    metrics: [...loadMetrics(settings.genaiProfile), ...beside.metrics],
  });
  const observer = openObserver(run, { start, anchor, sinks });
  const startupCpu = ownCpuTime();
  const running = startLoad(plan, eventsFor(observer, screen));
  const release = stopWith(run, running);
  const watched = await watch({
    sources: beside.sources,
    sinks: sinks.all,
    clock,
    duration: running.finished,
    onStop: () => () => {},
    onTick: () => observer.tick(clock.now()),
  });
  release();
  screen.endProgress();
  const outcome = await outcomeOf(running, sinks);
  await beside.close();
  const result = observer.end(clock.now(), { ...outcome, complete: true });
  saySampling(observer, screen);
  const end = runEnd(result, { watched, beside, startupCpu });
  const { findings, traceUrl } = await finish(sinks, {
    end,
    screen,
    enrich: (view) => withLoadResult(view, result),
  });
  return {
    result,
    view: withLoadResult(await wholeView(sinks, end, screen), result),
    findings,
    recording: sinks.recording?.directory ?? null,
    traceUrl,
    signal: stops.received,
  };
}

function openObserver(
  { plan, settings, beside }: Run,
  { start, anchor, sinks }: { start: RunStart; anchor: ClockAnchor; sinks: Sinks },
): LoadObserver {
  const machine = { host: hostname(), cores: availableParallelism(), ...anchor };
  return new LoadObserver(
    {
      plan,
      meta: resultMeta(plan, machine),
      profile: settings.genaiProfile,
      engine: beside.engine,
      traceId: start.traceId,
      wall: (mono) => anchor.wall + (mono - anchor.mono),
      emit: (observation) => {
        for (const sink of sinks.all) sink.write(observation);
      },
    },
    start.startedAt,
  );
}

function eventsFor(observer: LoadObserver, screen: LoadRunScreen): EngineEvents {
  return {
    onBatch(batch) {
      observer.add(batch);
      screen.batch(batch);
    },
    onStage(event) {
      observer.stage(event);
      screen.stage(event);
    },
  };
}

/** The first signal drains, the second ends at once, the third has its default action. */
function stopWith({ stops, context }: Run, running: RunningLoad): () => void {
  let again = () => {};
  const first = stops.listen(() => {
    running.stop();
    context.screen.note('stopping: waiting for the requests under way; Ctrl-C again ends at once');
    again = context.environment.onStop(() => running.stop());
  });
  return () => {
    first();
    again();
  };
}

/** How the engine ended; when it could not even begin, everything is closed and its error thrown. */
async function outcomeOf(
  running: RunningLoad,
  sinks: Sinks,
): Promise<{ readonly interrupted: boolean }> {
  try {
    return await running.finished;
  } catch (error) {
    for (const sink of sinks.all) await sink.close();
    throw error;
  }
}

function saySampling(observer: LoadObserver, screen: LoadRunScreen): void {
  const { requests, sampled, kept } = observer.spans;
  if (sampled === requests) return;
  const worst = kept === 0 ? '' : `, and ${kept} of the slowest and failed ones recorded`;
  screen.note(`spans of ${sampled} of ${requests} requests were sampled${worst} (--trace-sample)`);
}

/** What the default name of the recording's folder ends with. */
function folderName({ endpoint }: LoadPlan): string {
  return endpoint.address.kind === 'unix' ? endpoint.address.path : endpoint.authority;
}

function runStart({ plan, settings, beside }: Run, anchor: ClockAnchor): RunStart {
  const host = describeHost();
  const engine: CollectorInfo = {
    name: COLLECTOR.load,
    available: true,
    reason: null,
    remedy: null,
  };
  return {
    schemaVersion: RECORDING_SCHEMA_VERSION,
    toolVersion: toolVersion(),
    command: 'load',
    startedAt: anchor.wall,
    traceId: plan.trace?.traceId ?? newTraceId(),
    targets: beside.targets,
    collectors: [engine, ...beside.infos],
    settings: {
      gen_ai_profile: settings.genaiProfile,
      url: plan.endpoint.url,
      api: plan.endpoint.api,
      model: plan.body.model,
      seed: plan.seed,
      workers: plan.workers,
      drain_s: plan.drain,
      propagate: plan.trace !== null,
      run_id: plan.runId,
      host_kernel: host.kernel,
      host_architecture: host.architecture,
      host_cores: host.cores,
      host_memory_bytes: host.memory,
    },
  };
}

function runEnd(
  result: LoadResult,
  context: { watched: Watched; beside: Beside; startupCpu: Seconds },
): RunEnd {
  const { watched, beside, startupCpu } = context;
  const { samples = 0, late = 0, dropped = 0 } = beside.sampler?.statistics ?? {};
  return {
    endedAt: watched.to,
    interrupted: result.interrupted,
    reason: result.interrupted ? 'interrupted' : 'finished',
    ownCpuRatio: watched.ownCpu,
    startupCpu,
    targetPaused: beside.sampler?.targetPaused ?? 0,
    samples,
    late,
    dropped,
    summary: loadSummary(result),
  };
}
