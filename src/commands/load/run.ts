import { availableParallelism, hostname } from 'node:os';
import { resolve } from 'node:path';
import { type ClockAnchor, anchoredClock, takeAnchor } from '../../core/clock.ts';
import { LOAD_ATTR, loadMetrics } from '../../core/semconv-load.ts';
import type { Observation, RunStart, Seconds } from '../../core/types.ts';
import type { EngineEvents, RunningLoad, StartLoad } from '../../load/contracts.ts';
import { helperThreads, stepBack } from '../../load/engine/priority.ts';
import { usefulWorkers } from '../../load/engine/workload.ts';
import { Backlog } from '../../load/observe/backlog.ts';
import { LoadObserver } from '../../load/observe/observer.ts';
import { withLoadResult } from '../../load/observe/read-back.ts';
import type { LoadPlan } from '../../load/plan.ts';
import { isSampled } from '../../load/trace-context.ts';
import { resultMeta } from '../../load/results/builder.ts';
import type { Environment } from '../command-line/command.ts';
import { type Beside, openBeside } from './beside.ts';
import type { RequestLog } from './request-log.ts';
import { folderName, loadRunEnd, loadRunStart } from './run-facts.ts';
import type { LoadRun, LoadRunScreen, LoadSettings } from './settings.ts';
import { finish, openSinks, type Sinks, wholeView } from '../watching/run-sinks.ts';
import { StopSignals } from '../watching/stop-signals.ts';
import { ownCpuTime, watch } from '../watching/watch.ts';

/** Running a plan: engine, sinks, what is watched beside it, and the result. */

/**
 * Seconds from one writing down to the next where no core is free beside the workers: it takes 10 to 15 ms, which each second would be seen in the
 * 99th percentile of gaps. A run that is killed loses so much.
 */
const CRAMPED_TICK = 5;

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
  // Before the threads that sample a process beside the run: those must not wait.
  const helpers = helperThreads();
  // From here on there is something to write down or to take back before we end.
  const stops = new StopSignals(context.environment);
  const beside = await openBeside(settings, context);
  const atExit: (() => void)[] = [];
  try {
    return await runBeside({ plan, settings, context, beside, stops, helpers, atExit });
  } finally {
    await beside.close();
    stops.close();
    for (const release of atExit) release();
  }
}

interface Run {
  readonly plan: LoadPlan;
  readonly settings: LoadSettings;
  readonly context: LoadContext;
  readonly beside: Beside;
  readonly stops: StopSignals;
  /** Node's own threads. */
  readonly helpers: readonly number[];
  /** Done when the result is there. */
  readonly atExit: (() => void)[];
}

async function runBeside(run: Run): Promise<LoadRun> {
  const { plan, settings, context, beside, stops, helpers } = run;
  const { environment, screen } = context;
  const startLoad = context.startLoad ?? (await import('../../load/engine/engine.ts')).startLoad;
  const anchor = takeAnchor();
  const clock = anchoredClock(anchor);
  const start = loadRunStart(run, anchor.wall);
  const sinks = await openSinks(start, {
    ...settings,
    name: folderName(plan),
    environment,
    screen,
    clock,
    metrics: [...loadMetrics(settings.genaiProfile), ...beside.metrics],
  });
  const free = availableParallelism() - usefulWorkers(plan);
  const isCramped = free <= 0;
  // A server on this machine needs a core as well.
  const backlog = new Backlog(isCramped || (free <= 1 && isOnThisMachine(plan)));
  const observer = openObserver(run, { start, anchor, sinks, backlog });
  const log = await openRequestLog(run, { start, anchor });
  const startupCpu = ownCpuTime();
  let seconds = 0;
  const running = startLoad(plan, eventsFor({ observer, log, backlog, screen }));
  const stepForward = stepBack(helpers);
  const release = stopWith(run, running);
  const watched = await watch({
    sources: beside.sources,
    sinks: sinks.all,
    clock,
    since: start.startedAt,
    duration: running.finished,
    onStop: () => () => {},
    onTick: () => {
      if (isCramped && ++seconds % CRAMPED_TICK !== 0) return;
      observer.tick(clock.now());
      // At once, or a kill would cost the second before the last too.
      void sinks.recording?.flush();
    },
  });
  stepForward();
  release();
  screen.endProgress();
  const outcome = await outcomeOf(running, { sinks, log });
  await backlog.settle();
  await log?.close();
  await beside.close();
  const result = observer.end(clock.now(), { ...outcome, complete: true });
  saySampling(observer, screen);
  const end = loadRunEnd(result, { watched, beside, startupCpu });
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
  {
    start,
    anchor,
    sinks,
    backlog,
  }: { start: RunStart; anchor: ClockAnchor; sinks: Sinks; backlog: Backlog },
): LoadObserver {
  const machine = { host: hostname(), cores: availableParallelism(), ...anchor };
  return new LoadObserver(
    {
      plan,
      meta: resultMeta(plan, machine),
      profile: settings.genaiProfile,
      engine: beside.engine,
      traceId: start.traceId,
      wall: wallOf(anchor),
      backlog,
      emit: (observation) => {
        for (const sink of sinks.all) {
          if (sink !== sinks.memory || isNeededAtEnd(observation, settings)) {
            sink.write(observation);
          }
        }
      },
    },
    start.startedAt,
  );
}

/**
 * What the observer counted is in the result; requests one by one are for the disk and the receiver: memory must not grow with the run. But where a
 * server or its page is watched, those that were slow are looked at, and of any run a number of all that grows with its logarithm: whether
 * they take longer and longer.
 */
function isNeededAtEnd(observation: Observation, { attach, metricsUrl }: LoadSettings): boolean {
  if (observation.kind === 'event') return true;
  if (observation.kind !== 'span') return false;
  const index = observation.attributes[LOAD_ATTR.requestIndex];
  const isKept =
    observation.context?.sampled === true &&
    typeof index === 'number' &&
    isSampled(index, 'thinning');
  return isKept || attach !== null || metricsUrl !== null;
}

async function openRequestLog(
  { settings, context }: Run,
  { start, anchor }: { start: RunStart; anchor: ClockAnchor },
): Promise<RequestLog | null> {
  const { requestLog } = settings;
  if (requestLog === null) return null;
  const { RequestLog } = await import('./request-log.ts');
  const path = resolve(context.environment.cwd, requestLog.path);
  return RequestLog.open(
    { ...requestLog, path },
    {
      context: { wall: wallOf(anchor), traceId: start.traceId },
      problem: (text) => context.screen.problem(text),
    },
  );
}

function wallOf(anchor: ClockAnchor): (mono: Seconds) => Seconds {
  return (mono) => anchor.wall + (mono - anchor.mono);
}

function eventsFor({
  observer,
  log,
  backlog,
  screen,
}: {
  observer: LoadObserver;
  log: RequestLog | null;
  backlog: Backlog;
  screen: LoadRunScreen;
}): EngineEvents {
  return {
    onBatch(batch) {
      observer.add(batch);
      if (log !== null) {
        for (const request of batch.requests) backlog.add(() => log.write(request));
      }
      screen.batch(batch);
    },
    onStage(event) {
      observer.stage(event);
      screen.stage(event);
    },
  };
}

/**
 * The first signal drains, the second ends at once, the third has its default action. The second is listened for to the very end: one that comes
 * when the last answers are in, and before the result is out, must not take that away.
 */
function stopWith({ stops, context, atExit }: Run, running: RunningLoad): () => void {
  let isOver = false;
  const over = (): void => {
    isOver = true;
  };
  running.finished.then(over, over);
  return stops.listen(() => {
    running.stop();
    const again = context.environment.onStop(() => {
      if (!isOver) running.stop();
    });
    atExit.push(again);
    context.screen.note('stopping: waiting for the requests under way; Ctrl-C again ends at once');
  });
}

/** How the engine ended; when it could not even begin, everything is closed and its error thrown. */
async function outcomeOf(
  running: RunningLoad,
  open: { readonly sinks: Sinks; readonly log: RequestLog | null },
): Promise<{ readonly interrupted: boolean }> {
  try {
    return await running.finished;
  } catch (error) {
    for (const sink of open.sinks.all) await sink.close();
    await open.log?.close();
    throw error;
  }
}

function saySampling(observer: LoadObserver, screen: LoadRunScreen): void {
  const { requests, sampled, kept } = observer.spans;
  if (sampled === requests) return;
  const worst = kept === 0 ? '' : `, and ${kept} of the slowest and failed ones recorded`;
  screen.note(`spans of ${sampled} of ${requests} requests were sampled${worst} (--trace-sample)`);
}

function isOnThisMachine({ endpoint: { address } }: LoadPlan): boolean {
  return address.kind === 'unix' || /^(?:127\.|::1$|localhost$)/.test(address.host);
}
