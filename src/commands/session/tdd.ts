import { usageError } from '../../core/errors.ts';
import { EXIT, type ExitCode } from '../../core/exit-code.ts';
import { encodeFields } from '../../session/value.ts';
import type { Command, CommandContext, Usage } from '../command-line/command.ts';
import { answer, openSession, SESSION_HELP, SESSION_OPTIONS, textOf } from './opening.ts';
import { trialsAsked } from './reproduce.ts';
import { runTrials } from './trials.ts';

const OUTPUT_KEPT = 1000;

const help = `trace session tdd - a test that fails while the fault is there

Usage:
  trace session tdd --file <path> [--name <test>] -- <command>

Runs the test and writes down that it fails. Where the project's
.planning/config.json says workflow.tdd_mode, no fix is approved before.

Options:
      --file <path>     the test's file
      --name <test>     the test
      --timeout <time>  what it may take (default 300s)
${SESSION_HELP}
Exit codes:
  0    it fails, as it should
  1    it passes
  2    wrong usage
  3    no such session
  6    it could not be run
  70   a bug in trace
  130  Ctrl-C

Examples:
  trace session tdd --file test_retry.py -- pytest test_retry.py

More: docs/session.md
`;

/** `trace session tdd` as its help shows it. */
export const sessionTddUsage: Usage = {
  name: 'session tdd',
  summary: 'A test that fails while the fault is there',
  help,
  options: {
    ...SESSION_OPTIONS,
    file: { type: 'string' },
    name: { type: 'string' },
    timeout: { type: 'string' },
  },
  takesCommand: true,
  completes: { argument: 'command', values: { dir: 'folder', file: 'file' } },
};

/** `trace session tdd -- <command>`. */
export const sessionTddCommand: Command = { ...sessionTddUsage, run };

async function run(context: CommandContext): Promise<ExitCode> {
  const { values, command, environment } = context;
  const file = textOf(values, 'file');
  if (file === null || command.length === 0)
    throw usageError(
      'which test?',
      'trace session tdd --file test_retry.py -- pytest test_retry.py',
    );
  const opened = openSession(context);
  const { limit } = trialsAsked(values);
  const trials = await runTrials(command, { cwd: environment.cwd, runs: 1, limit, context });
  if (trials.isInterrupted) return EXIT.interrupted;
  const status = trials.failing > 0 ? 'red' : trials.passing > 0 ? 'green' : 'not run';
  await opened.store.update(opened.file, (document) => {
    const checkpoint = {
      test_file: file,
      test_name: textOf(values, 'name') ?? '',
      command: JSON.stringify(command),
      status,
      failure_output:
        status === 'green' ? '' : (trials.reason ?? trials.output).trim().slice(-OUTPUT_KEPT),
    };
    document.setField('current_focus', 'tdd_checkpoint', encodeFields(checkpoint), {
      nested: true,
    });
  });
  answer(context, 'tdd', opened, [`the test is ${status}`]);
  if (status === 'red') return EXIT.ok;
  return status === 'green' ? EXIT.finding : EXIT.invalid;
}
