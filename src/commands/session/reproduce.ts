import { usageError } from '../../core/errors.ts';
import { EXIT, type ExitCode } from '../../core/exit-code.ts';
import { maskArguments } from '../../core/secrets/mask.ts';
import { encodeList } from '../../core/session-value.ts';
import { isApprovedHere, keepApproval } from '../../session/approval-record.ts';
import { readSession } from '../../session/session.ts';
import type {
  Command,
  CommandContext,
  OptionTable,
  OptionValues,
  Usage,
} from '../command-line/command.ts';
import { parseCount, parseDuration } from '../command-line/parse.ts';
import { answer, openSession, SESSION_HELP, SESSION_OPTIONS, textOf } from './opening.ts';
import { runTrials, trialsText } from './trials.ts';

const RUNS = 1;
const MOST_RUNS = 100_000;
const LIMIT = '300s';

/** Flags of the verbs that run the session's reproduction. */
export const TRIAL_OPTIONS: OptionTable = {
  runs: { type: 'string', short: 'n' },
  timeout: { type: 'string' },
};

const help = `trace session reproduce - see the fault happen

Usage:
  trace session reproduce [options] -- <command>

Runs the command and writes down what it said. It shows the fault when it ends
with anything but 0; 125 to 127 mean that it could not test (as git bisect run
has it). No fix is approved before the fault was seen; every attempt, and the
end, run the same command again. For a race give it runs: -n 50.

Options:
  -n, --runs <n>        how often (default 1)
      --timeout <time>  what one run may take (default 300s); one that does not
                        end shows the fault
${SESSION_HELP}
Exit codes:
  0    the fault was seen
  1    it was not seen
  2    wrong usage
  3    no such session
  6    it could not be tested
  70   a bug in trace
  130  Ctrl-C

Examples:
  trace session reproduce -- python repro.py
  trace session reproduce -n 50 -- node test/retry.mjs

More: docs/session.md
`;

/** `trace session reproduce` as its help shows it. */
export const sessionReproduceUsage: Usage = {
  name: 'session reproduce',
  summary: 'See the fault happen',
  help,
  options: { ...SESSION_OPTIONS, ...TRIAL_OPTIONS },
  takesCommand: true,
  completes: { argument: 'command', values: { dir: 'folder' } },
};

/** `trace session reproduce -- <command>`. */
export const sessionReproduceCommand: Command = { ...sessionReproduceUsage, run };

/** How often, and how long each: by the flags, else as it was the last time. */
export function trialsAsked(
  values: OptionValues,
  before: number = RUNS,
): { runs: number; limit: number } {
  const runs = textOf(values, 'runs');
  const limit = textOf(values, 'timeout') ?? LIMIT;
  return {
    runs: runs === null ? before : parseCount(runs, { flag: '--runs', least: 1, most: MOST_RUNS }),
    limit: parseDuration(limit, { flag: '--timeout', bare: 's', least: 0.1, most: 86_400 }),
  };
}

async function run(context: CommandContext): Promise<ExitCode> {
  const { values, positionals, command, environment } = context;
  if (positionals.length > 0) throw usageError('the command stands behind --');
  if (command.length === 0)
    throw usageError(
      'which command shows the fault?',
      'trace session reproduce -- python repro.py',
    );
  const opened = openSession(context);
  const { runs, limit } = trialsAsked(values);
  const trials = await runTrials(command, { cwd: environment.cwd, runs, limit, context });
  if (trials.isInterrupted) return EXIT.interrupted;
  const text = trialsText(trials);
  const at = new Date().toISOString();
  const seen = trials.failing > 0;
  const shown = maskArguments(command);
  // It is run again by every attempt: with a credential replaced it would show something else.
  if (seen && values['quiet'] !== true && shown.some((word, i) => word !== command[i]))
    environment.stderr.write(
      'trace: the command is kept as it was typed, and holds what looks like a credential\n' +
        '       Pass it by a variable of the environment and run reproduce again.\n',
    );
  const place = { path: opened.file.path, env: environment.env };
  await opened.store.update(opened.file, (document, session) => {
    const isApproved = isApprovedHere(session, place);
    if (seen) {
      document.setField('reproduction', 'command', encodeList(command), { list: true });
      document.setField('reproduction', 'runs', String(runs));
      document.setField('reproduction', 'seen_failing', `${at}: ${text}`);
      document.setField('reproduction', 'output', trials.output.trim(), { outside: true });
    }
    document.append('evidence', {
      timestamp: at,
      checked: `reproduction: ${shown.join(' ')}`,
      found: text,
    });
    // Whoever typed this command has approved before, and the diagnosis is the same.
    if (isApproved) keepApproval(readSession(session.slug, document.toString()), place);
  });
  answer(context, 'reproduce', opened, [text]);
  if (seen) return EXIT.ok;
  return trials.passing > 0 ? EXIT.finding : EXIT.invalid;
}
