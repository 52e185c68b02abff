import { basename, join } from 'node:path';
import type { StackSource } from '../../collectors/sampler/stack-source.ts';
import { detectAll } from '../analysis/detectors.ts';
import { anchoredClock, takeAnchor } from '../core/clock.ts';
import { TraceError } from '../core/errors.ts';
import { combineExitCodes, EXIT, type ExitCode } from '../core/exit-code.ts';
import { newTraceId } from '../core/ids.ts';
import type {
  Availability,
  Clock,
  Finding,
  RecordingView,
  RunEnd,
  RunStart,
  Seconds,
  Sink,
} from '../core/types.ts';
import type { OtlpSink } from '../otel/sink.ts';
import { cpuLimitOf, describeHost, stealTime } from '../platform/host.ts';
import { targetInfo } from '../platform/target.ts';
import { type MemoryRecording, memoryRecording } from '../recording/memory.ts';
import { openRecording } from '../recording/reader.ts';
import { defaultRecordingDirectory } from '../recording/directory.ts';
import { RECORDING_SCHEMA_VERSION } from '../recording/format.ts';
import { openRecordingWriter, type RecordingSink } from '../recording/writer.ts';
import { buildReport } from '../report/report.ts';
import { attachUsage, type AttachOptions, parseAttachOptions } from './attach-options.ts';
import { type AttachPlan, probeTarget } from './attach-probe.ts';
import { AttachScreen } from './attach-screen.ts';
import { ownCpuTime, runEnd, watch, type Watched } from './attach-watch.ts';
import type { Command, CommandContext, Environment } from './command.ts';
import { exitCodeOfFindings } from './outcome.ts';
import { toolVersion } from './version.ts';

/** `trace attach`: find the target, say what can be seen, watch it, report. */
export const attachCommand: Command = { ...attachUsage, run };

/** Share of a run's time. */
const UNSEEN_LIMIT = 0.5;
/** Cores. A block of 50 ms grows by a fifth when a fifth of a core is gone. */
const STEAL_WORTH_SAYING = 0.2;

async function run({ values, positionals, environment }: CommandContext): Promise<ExitCode> {
  const { loadConfig } = await import('../config/config.ts');
  const config = await loadConfig(environment);
  const options = parseAttachOptions(values, positionals, config);
  const screen = new AttachScreen(options, environment);
  if (options.target.by === 'list') return screen.showCandidates();
  const plan = await probeTarget(options, openStackSource);
  screen.announce(plan);
  const clock = anchoredClock(takeAnchor());
  const start = runStart(plan, options, clock);
  const sinks = await openSinks(start, { options, environment, screen, clock });
  const startupCpu = ownCpuTime();
  const stolenBefore = stealTime();
  const watched = await watch({
    target: plan.found.target,
    collectors: plan.collectors,
    sinks: [...sinks.all, screen],
    clock,
    duration: options.duration,
    onStop: (stop) => environment.onStop(stop),
    onTick: (elapsed) => screen.tick(elapsed),
  });
  screen.endProgress();
  const steal = stealProblem(stealTime() - stolenBefore, watched.to - watched.from);
  if (steal !== null) screen.problem(steal);
  const { samples = 0, late = 0, dropped = 0 } = plan.sampler?.statistics ?? {};
  const end = runEnd(watched, {
    startupCpu,
    targetPaused: plan.sampler?.targetPaused ?? 0,
    samples,
    late,
    dropped,
    unbounded: options.duration === null,
  });
  const findings = await finish(sinks, { end, screen });
  const { view, recording } = await readBack(sinks, end, screen);
  const report = buildReport(view, findings, { recording, problems: screen.problems });
  screen.showReport(report);
  if (watched.observed === 0 && watched.reason === 'target-gone') {
    throw new TraceError(
      'ERR_TARGET_GONE',
      `pid ${plan.found.target.pid} ended before anything was observed`,
      {
        exitCode: EXIT.notFound,
      },
    );
  }
  return exitCode(findings, watched, { end, exitZero: options.exitZero });
}

interface Setup {
  readonly options: AttachOptions;
  readonly environment: Environment;
  readonly screen: AttachScreen;
  readonly clock: Clock;
}

interface Sinks {
  readonly memory: MemoryRecording;
  readonly recording: RecordingSink | null;
  readonly otlp: OtlpSink | null;
  readonly all: readonly Sink[];
}

async function openSinks(start: RunStart, setup: Setup): Promise<Sinks> {
  const { options, environment } = setup;
  const memory = memoryRecording(start);
  const recording = options.recording.enabled ? await openDisk(start, setup) : null;
  const otlp = await openOtlp(start, options, environment);
  const all = [memory, recording, otlp].filter((sink) => sink !== null);
  return { memory, recording, otlp, all };
}

async function openDisk(
  start: RunStart,
  { options, environment, screen, clock }: Setup,
): Promise<RecordingSink | null> {
  const { path, parent, overwrite, raw } = options.recording;
  const usual = defaultRecordingDirectory({
    verb: start.command,
    target: String(start.targets[0]?.pid ?? ''),
    now: start.startedAt,
    cwd: environment.cwd,
    env: environment.env,
  });
  const directory = path ?? (parent === null ? usual : join(parent, basename(usual)));
  if (path !== null && overwrite) {
    const { removeRecording } = await import('../recording/remove.ts');
    await removeRecording(path);
  }
  try {
    return await openRecordingWriter({
      directory,
      start,
      env: environment.env,
      ifExists: path === null ? 'suffix' : 'fail',
      raw,
      clock,
      onFailure: (error) => screen.recordingFailure(`the recording stopped: ${error.message}`),
    });
  } catch (error) {
    // A folder the user named must work; the default one is a courtesy that a full or read-only disk may refuse.
    if (path !== null || !(error instanceof TraceError)) throw error;
    screen.problem(`no recording was kept: ${error.message}`);
    return null;
  }
}

async function openOtlp(
  start: RunStart,
  options: AttachOptions,
  environment: Environment,
): Promise<OtlpSink | null> {
  const { enabled, endpoint } = options.otlp;
  const { env } = environment;
  const asked = enabled || Object.keys(env).some((name) => name.startsWith('OTEL_EXPORTER_OTLP_'));
  if (!asked) return null;
  const [{ otlpConfig }, { openOtlpSink }] = await Promise.all([
    import('../otel/environment.ts'),
    import('../otel/sink.ts'),
  ]);
  const named = Object.keys(env).some((name) =>
    /^OTEL_EXPORTER_OTLP_(?:\w+_)?ENDPOINT$/.test(name),
  );
  const config = otlpConfig({
    env,
    endpoint: endpoint ?? (enabled && !named ? DEFAULT_OTLP_ENDPOINT : undefined),
  });
  return config === null ? null : openOtlpSink({ config, start });
}

/** OTLP/HTTP's default endpoint (opentelemetry.io/docs/specs/otel/protocol/exporter). */
const DEFAULT_OTLP_ENDPOINT = 'http://localhost:4318';

/** Findings from what is in memory, written where the observations went; every sink is closed. */
async function finish(
  sinks: Sinks,
  { end, screen }: { end: RunEnd; screen: AttachScreen },
): Promise<readonly Finding[]> {
  const findings = detectAll(sinks.memory.view(end));
  await sinks.recording?.end(end, findings);
  if (sinks.otlp !== null) {
    const report = await sinks.otlp.end(end, findings);
    for (const warning of report.warnings) screen.problem(warning);
  }
  await sinks.memory.close();
  return findings;
}

/** The recording as a later `show` will read it; what is in memory where there is none, or it could not be finished. */
async function readBack(
  sinks: Sinks,
  end: RunEnd,
  screen: AttachScreen,
): Promise<{ view: RecordingView; recording: string | null }> {
  const inMemory = sinks.memory.view(end);
  if (sinks.recording === null) return { view: inMemory, recording: null };
  const { directory } = sinks.recording;
  if (!screen.recordingFailed) {
    try {
      return { view: await openRecording(directory), recording: directory };
    } catch (error) {
      screen.problem(`the recording cannot be read back: ${String(error)}`);
    }
  }
  return { view: inMemory, recording: directory };
}

function runStart(plan: AttachPlan, options: AttachOptions, clock: Clock): RunStart {
  return {
    schemaVersion: RECORDING_SCHEMA_VERSION,
    toolVersion: toolVersion(),
    command: 'attach',
    startedAt: clock.now(),
    traceId: newTraceId(),
    targets: [targetInfo(plan.found, plan.runtime)],
    collectors: plan.infos,
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
    : `the hypervisor gave ${share.toFixed(2)} cores' time to others during the run: durations may be too long`;
}

function exitCode(
  findings: readonly Finding[],
  watched: Watched,
  { end, exitZero }: { end: RunEnd; exitZero: boolean },
): ExitCode {
  const codes: ExitCode[] = hasTooFewSamples(watched, end) ? [EXIT.invalid] : [];
  if (!exitZero) codes.push(exitCodeOfFindings(findings));
  if (watched.signal === 'SIGTERM') codes.push(EXIT.terminated);
  else if (end.interrupted) codes.push(EXIT.interrupted);
  return combineExitCodes(codes);
}

/** Loaded only for Node: it brings a WebSocket client. */
async function openStackSource(
  pid: number,
): Promise<StackSource | Extract<Availability, { available: false }>> {
  const { NodeProfiler } = await import('../../collectors/node/profiler.ts');
  const opened = await NodeProfiler.open(pid);
  return opened.ok
    ? opened.profiler
    : { available: false, reason: opened.reason, remedy: opened.remedy };
}
