import { join } from 'node:path';
import { detectAll } from '../../analysis/detectors.ts';
import { TraceError } from '../../core/errors.ts';
import type {
  Bytes,
  Clock,
  Finding,
  Metric,
  RecordingView,
  RunEnd,
  RunStart,
  Sink,
} from '../../core/types.ts';
import { formatSeconds } from '../../core/units.ts';
import {
  callerOwner,
  defaultRecordingDirectory,
  recordingName,
} from '../../recording/directory.ts';
import { type MemoryRecording, memoryRecording } from '../../recording/memory.ts';
import { readRecordingBack } from '../../recording/reader.ts';
import { openRecordingWriter, type RecordingSink } from '../../recording/writer.ts';
import type { ReportExtra } from '../../report/report.ts';
import type { AttachOptions } from '../attach/options.ts';
import type { Environment } from '../command-line/command.ts';
import { type Export, openExport } from './run-export.ts';

/** Where a run's observations go: memory, a recording on disk, an OTLP receiver; and how they are closed and read back. */

/** Reading this takes a second or two; a day would take a minute. */
const READ_BACK: Bytes = 16 * 1024 * 1024;

/** What is told to the person in front of the run. */
export interface SinkScreen {
  readonly recordingFailed: boolean;
  /** How it goes on; nothing that the report has to hold. */
  note(text: string): void;
  /** Said at once, and again in the report. */
  problem(text: string): void;
  /** The recording on disk ends early; the report comes from memory. */
  recordingFailure(text: string): void;
}

/** What opening the sinks of a run depends on. */
export interface Setup {
  readonly recording: AttachOptions['recording'];
  readonly otlp: AttachOptions['otlp'];
  /** What the default name of the folder ends with. */
  readonly name: string;
  readonly environment: Environment;
  readonly screen: SinkScreen;
  readonly clock: Clock;
  /** Metrics beyond those of semconv.ts. */
  readonly metrics?: readonly Metric[];
}

/** The sinks of one run. */
export interface Sinks {
  readonly memory: MemoryRecording;
  readonly recording: RecordingSink | null;
  readonly otlp: Export | null;
  readonly all: readonly Sink[];
}

/** What a run comes to, to be reported. */
export interface Conclusion {
  readonly view: RecordingView;
  readonly findings: readonly Finding[];
  /** What its report says beyond these. */
  readonly extra: ReportExtra;
}

/** The sinks of one run, and what they come to. */
export interface RunSinks {
  readonly all: readonly Sink[];
  /** Once, when nothing more is observed. */
  conclude(end: RunEnd): Promise<Conclusion>;
}

/** The sinks of a run that is kept as a whole. Throws a TraceError when a folder the user named cannot be used. */
export async function openRunSinks(start: RunStart, setup: Setup): Promise<RunSinks> {
  const sinks = await openSinks(start, setup);
  const { screen } = setup;
  return {
    all: sinks.all,
    async conclude(end) {
      const { findings, traceUrl } = await finish(sinks, { end, screen });
      const { view, recording } = await readBack(sinks, end, screen);
      return { view, findings, extra: { recording, traceUrl } };
    },
  };
}

/** Opens what the options ask for. Throws a TraceError when a folder the user named cannot be used. */
export async function openSinks(start: RunStart, setup: Setup): Promise<Sinks> {
  const { metrics = [] } = setup;
  const memory = memoryRecording(start, { metrics });
  const recording = setup.recording.enabled ? await openDisk(start, setup) : null;
  const otlp = await openExport(start, setup);
  const all = [memory, recording, otlp?.sink ?? null].filter((sink) => sink !== null);
  return { memory, recording, otlp, all };
}

async function openDisk(
  start: RunStart,
  { recording, name, environment, screen, clock, metrics = [] }: Setup,
): Promise<RecordingSink | null> {
  const { path, parent, overwrite, raw, maxSize } = recording;
  const naming = { verb: start.command, target: name, now: start.startedAt };
  if (path !== null && overwrite) {
    const { removeRecording } = await import('../../recording/remove.ts');
    await removeRecording(path, callerOwner(environment.env));
  }
  try {
    const directory =
      path ??
      (parent === null
        ? defaultRecordingDirectory({ ...naming, ...environment })
        : join(parent, recordingName(naming)));
    return await openRecordingWriter({
      directory,
      start,
      env: environment.env,
      ifExists: path === null ? 'suffix' : 'fail',
      raw,
      ...(maxSize === undefined ? {} : { maxSize }),
      metrics,
      clock,
      onFailure: (error) => screen.recordingFailure(`the recording stopped: ${error.message}`),
      onResume: ({ from, to }) =>
        screen.problem(`the recording goes on; it lacks ${formatSeconds(to - from)}`),
    });
  } catch (error) {
    // A folder the user named must work; the default one is a courtesy that a full or read-only disk may refuse.
    if (path !== null || !(error instanceof TraceError)) throw error;
    screen.problem(`no recording was kept: ${error.message}`);
    return null;
  }
}

/** Everything that was observed: from memory, or from disk where a long run did not fit into it. */
export async function wholeView(
  sinks: Sinks,
  end: RunEnd,
  screen: SinkScreen,
): Promise<RecordingView> {
  const { memory, recording } = sinks;
  if (memory.dropped === 0 || recording === null || screen.recordingFailed) return memory.view(end);
  await recording.flush();
  try {
    return await readRecordingBack(recording.directory, recording.made);
  } catch {
    return memory.view(end);
  }
}

/**
 * Findings from what was observed, written where the observations went, and the URL of the exported trace; every sink is closed. `enrich` adds
 * to the view what detectors need and no sink holds.
 */
export async function finish(
  sinks: Sinks,
  {
    end,
    screen,
    enrich = (view) => view,
  }: { end: RunEnd; screen: SinkScreen; enrich?: (view: RecordingView) => RecordingView },
): Promise<{ findings: readonly Finding[]; traceUrl: string | null }> {
  const findings = detectAll(enrich(await wholeView(sinks, end, screen)));
  await sinks.recording?.end(end, findings);
  const traceUrl = (await sinks.otlp?.finish(end, findings)) ?? null;
  await sinks.memory.close();
  return { findings, traceUrl };
}

/**
 * The recording as a later `show` will read it; what is in memory where there is none, it could not be finished, or it is so long that nobody
 * would wait for it to be read: memory covers all of the run.
 */
async function readBack(
  sinks: Sinks,
  end: RunEnd,
  screen: SinkScreen,
): Promise<{ view: RecordingView; recording: string | null }> {
  const inMemory = sinks.memory.view(end);
  if (sinks.recording === null) return { view: inMemory, recording: null };
  const { directory, made } = sinks.recording;
  const isShort = sinks.recording.written <= READ_BACK;
  if (!screen.recordingFailed && (isShort || sinks.memory.dropped > 0)) {
    try {
      return { view: await readRecordingBack(directory, made), recording: directory };
    } catch (error) {
      screen.problem(`the recording cannot be read back: ${String(error)}`);
    }
  }
  return { view: inMemory, recording: directory };
}
