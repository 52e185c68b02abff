import { existsSync, readdirSync, statSync } from 'node:fs';
import { resolve } from 'node:path';
import { TraceError, usageError } from '../../core/errors.ts';
import { EXIT, type ExitCode } from '../../core/exit-code.ts';
import { printable } from '../../core/text.ts';
import {
  type CommandEnd,
  describeEnd,
  exitCodeOf,
  startCommand,
  type StartedCommand,
} from '../../platform/started-command.ts';
import { titleOf } from '../../platform/target-title.ts';
import { passOnSignals } from '../../platform/touch.ts';
import { sleepWithoutCompacting } from '../attach/attach.ts';
import { AttachScreen } from '../attach/screen.ts';
import type { Command, CommandContext, Environment, TextOutput } from '../command-line/command.ts';
import { isRefused } from './fail-on.ts';
import { parseRunOptions, type RunOptions, runUsage } from './options.ts';
import { openReportFile } from './report-file.ts';
import { type CommandOutcome, watchCommand } from './watch.ts';

/** `trace run`: start a command, watch it as attach would, and end as it does. */
export const runCommand: Command = { ...runUsage, run };

async function run(context: CommandContext): Promise<ExitCode> {
  const { environment } = context;
  const { loadConfig } = await import('../../config/config.ts');
  const options = parseRunOptions(context.values, context, await loadConfig(environment));
  // What the user can mend is said before anything is started.
  requireFreeFolder(options.watch.recording, environment.cwd);
  const report = openReport(options, environment);
  sleepWithoutCompacting();
  let command: StartedCommand | null = null;
  const release = passOnSignals(() => command?.child ?? null);
  const started = await startCommand(options.command, environment).catch((error: unknown) => {
    release();
    throw error;
  });
  command = started;
  // Once it has ended, nobody but us is meant by a signal; the report is still to be made then.
  const reporting = started.ended.then(() => {
    const letGo = environment.onStop(() => {});
    release();
    return letGo;
  });
  try {
    const screen = new AttachScreen(options.watch, { ...environment, stdout: report });
    const outcome = await watchCommand(started, { options, environment, screen });
    // After --duration the command goes on, and so do we: somebody waits for its exit code, and
    // signals go through us.
    const end = await started.ended;
    sayWhatIsLeft(started, end, screen);
    return decide(outcome, end, options.failOn);
  } finally {
    (await reporting)();
  }
}

function openReport(options: RunOptions, environment: Environment): TextOutput {
  const { stderr, cwd } = environment;
  if (options.report === null) return stderr;
  return openReportFile(resolve(cwd, options.report.path), {
    overwrite: options.report.overwrite,
    onFailure: (why) => stderr.write(`trace: ${why}\n`),
  });
}

function requireFreeFolder(
  { path, overwrite }: RunOptions['watch']['recording'],
  cwd: string,
): void {
  if (path === null || overwrite) return;
  const folder = resolve(cwd, path);
  if (!existsSync(folder) || (statSync(folder).isDirectory() && readdirSync(folder).length === 0))
    return;
  throw usageError(
    `${printable(path)} is there already`,
    'Name a new folder, or replace a recording with --force.',
  );
}

/** A daemon leaves the process that was started, and lives on: nobody watches it then, and nobody is told its exit code. */
function sayWhatIsLeft(command: StartedCommand, end: CommandEnd, screen: AttachScreen): void {
  for (const { pid, comm } of command.leftRunning().slice(0, LEFT_NAMED)) {
    screen.note(
      `the command ${describeEnd(end)} and left pid ${pid} running (${titleOf(pid, comm)}), which is watched no longer: trace attach ${pid}`,
    );
  }
}

/** So many of the processes that a command left are named. */
const LEFT_NAMED = 5;

/** The command's own exit code, unless `--fail-on` decides. */
function decide(
  { failure, findings }: CommandOutcome,
  end: CommandEnd,
  failOn: RunOptions['failOn'],
): ExitCode {
  // A bug, or a gate that could not be judged: neither may pass for the command's success.
  if (failure !== null && (failOn.length > 0 || !(failure instanceof TraceError))) throw failure;
  return isRefused(findings, { failOn, hasFailed: end.code !== 0 })
    ? EXIT.finding
    : exitCodeOf(end);
}
