import { constants } from 'node:fs';
import { access } from 'node:fs/promises';
import { dirname, join, resolve } from 'node:path';
import { EXIT } from '../../core/exit-code.ts';
import { TraceError } from '../../core/errors.ts';
import { printable } from '../../core/text.ts';
import type { RunEnd, RunStart } from '../../core/types.ts';
import {
  callerOwner,
  defaultRecordingDirectory,
  recordingName,
} from '../../recording/directory.ts';
import { openFolder } from '../../recording/folder.ts';
import type { Signal } from '../../otel/environment.ts';
import { openRecordingWriter, type RecordingSink } from '../../recording/writer.ts';
import { FlightRecorder } from './recorder.ts';
import { type ExportSetup, openExport } from '../watching/run-export.ts';
import type { RunSinks, Setup } from '../watching/run-sinks.ts';
import type { TriggerOptions } from './trigger-options.ts';

type Screen = ExportSetup['screen'];
type CalmSetup = Omit<Setup, 'screen'> & { readonly screen: Screen };

/**
 * The sinks of a run that is left on: a flight recorder in the place of memory and disk. Where OpenTelemetry is asked for, metrics are sent
 * all the time, as of any process that is watched; each event is a trace of its own, which is there when the event is over.
 */
export async function openFlight(
  start: RunStart,
  asked: Setup & { readonly trigger: TriggerOptions },
): Promise<RunSinks> {
  const setup = { ...asked, screen: calm(asked.screen) };
  const { trigger, screen, clock, metrics = [] } = setup;
  await checkFolder(setup);
  const numbers = await openExport(start, { ...setup, signals: ['metrics'] });
  const recorder = new FlightRecorder({
    start: { ...start, settings: { ...start.settings, ...settingsOf(trigger) } },
    trigger,
    metrics,
    clock,
    openDisk: (of, number) => openDisk(of, number, setup),
    openExport: (of) => openExport(of, { ...inBackground(setup), signals: EVENT_SIGNALS }),
    onNote: (text) => screen.note(text),
    onProblem: (text) => screen.problem(text),
  });
  return {
    all: [recorder, ...(numbers === null ? [] : [numbers.sink])],
    async conclude(end: RunEnd) {
      const { flight, findings } = await recorder.finish(end);
      await numbers?.finish(end, []);
      await recorder.close();
      return { view: recorder.tail(end), findings, extra: { recording: null, flight } };
    },
  };
}

/** With a disk that stays full each event has trouble of its own. */
const PROBLEMS_SAID = 20;

/** Says a trouble that comes again with each event once. */
function calm(screen: Screen): Screen {
  const said = new Set<string>();
  return {
    note: (text) => screen.note(text),
    problem(text) {
      if (said.has(text) || said.size >= PROBLEMS_SAID) return;
      said.add(text);
      screen.problem(text);
    },
  };
}

const EVENT_SIGNALS = ['traces', 'logs'] as const satisfies readonly Signal[];

function settingsOf(trigger: TriggerOptions): RunStart['settings'] {
  return { trigger_before_s: trigger.before, trigger_after_s: trigger.after };
}

/** While the run goes on, a delivery that is slow holds up nobody, and a signal is the run's. */
function inBackground(setup: CalmSetup): ExportSetup {
  const { screen } = setup;
  return {
    ...setup,
    environment: { ...setup.environment, onStop: () => () => {} },
    screen: { note: () => {}, problem: (text) => screen.problem(text) },
  };
}

/** `<utc>-<verb>-<name>-trigger-<n>`, or what `--output` says with `-trigger-<n>` behind it; never a folder that is there. */
async function openDisk(start: RunStart, number: number, setup: CalmSetup): Promise<RecordingSink> {
  const { recording, name, environment, screen, clock, metrics = [] } = setup;
  const suffix = `trigger-${number}`;
  const naming = { verb: start.command, target: `${name}-${suffix}`, now: start.startedAt };
  const { path, parent } = recording;
  const directory =
    path !== null
      ? `${resolve(environment.cwd, path)}-${suffix}`
      : parent === null
        ? defaultRecordingDirectory({ ...naming, ...environment })
        : join(parent, recordingName(naming));
  return openRecordingWriter({
    directory,
    start,
    env: environment.env,
    ifExists: 'suffix',
    // What was kept for half a minute is written at once; the ring has bounded it already.
    raw: true,
    metrics,
    clock,
    onFailure: (error) => screen.problem(`the recording ${directory} stopped: ${error.message}`),
  });
}

/** A folder that the user named is found not to work now, not at the first event a week later. */
async function checkFolder({ recording, environment }: CalmSetup): Promise<void> {
  const { path } = recording;
  if (path === null) return;
  const parent = dirname(resolve(environment.cwd, path));
  try {
    const folder = await openFolder(parent, callerOwner(environment.env));
    try {
      await access(folder.opened, constants.W_OK | constants.X_OK);
    } finally {
      await folder.close();
    }
  } catch (cause) {
    throw new TraceError(
      'ERR_RECORDING_NOT_WRITABLE',
      `cannot write recordings below ${printable(parent)}: ${cause instanceof Error ? cause.message : String(cause)}`,
      { exitCode: EXIT.usage, remedy: 'Name a folder that can be written with --output.', cause },
    );
  }
}
