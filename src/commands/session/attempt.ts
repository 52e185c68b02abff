import { usageError } from '../../core/errors.ts';
import { EXIT, type ExitCode } from '../../core/exit-code.ts';
import type { Session } from '../../core/session.ts';
import { flagsOf } from '../../session/diff-flags.ts';
import { isApprovedHere } from '../../session/approval-record.ts';
import { afterStrike, approvalOf, MOST_STRIKES, strikesOf } from '../../session/gates.ts';
import { decodeList, encodeList } from '../../core/session-value.ts';
import type { Command, CommandContext, Usage } from '../command-line/command.ts';
import { changeSince, inWorktree } from './git.ts';
import {
  answer,
  approveAgain,
  gateError,
  openSession,
  SESSION_HELP,
  SESSION_OPTIONS,
  textOf,
} from './opening.ts';
import { TRIAL_OPTIONS, trialsAsked } from './reproduce.ts';
import { runTrials, type Trials, trialsText } from './trials.ts';

const help = `trace session attempt - what was changed, and whether it helped

Usage:
  trace session attempt <what was changed> [options]

Runs the session's reproduction in the commit that was approved (in a worktree
of its own; "unmeasured" without git) and in the files as they are now. A change
that leaves the proposed files, or that only silences the symptom, is flagged.
The first failure asks for more evidence, the second for doubt about the
hypothesis; after the third no other of the same approach is taken.

Options:
      --approach <name>  what kind of change it is; another one starts anew
  -n, --runs <n>         of the reproduction (default: as it was seen failing)
      --timeout <time>   what one run may take (default 300s)
${SESSION_HELP}
Exit codes:
  0    the fault is gone
  1    it is not, or the attempt was refused
  2    wrong usage
  3    no such session
  6    it could not be measured
  70   a bug in trace
  130  Ctrl-C

Examples:
  trace session attempt 'lock around read and write'
  trace session attempt 'one writer task' --approach queue

More: docs/session.md
`;

/** `trace session attempt` as its help shows it. */
export const sessionAttemptUsage: Usage = {
  name: 'session attempt',
  summary: 'What was changed, and whether it helped',
  help,
  options: { ...SESSION_OPTIONS, ...TRIAL_OPTIONS, approach: { type: 'string' } },
  completes: { argument: 'text', values: { dir: 'folder' } },
};

/** `trace session attempt <change>`. */
export const sessionAttemptCommand: Command = { ...sessionAttemptUsage, run };

async function run(context: CommandContext): Promise<ExitCode> {
  const { values, positionals } = context;
  const change = positionals.join(' ').trim();
  if (change === '')
    throw usageError('what was changed?', "trace session attempt 'lock around read and write'");
  const opened = openSession(context);
  const session = opened.store.read(opened.file);
  const hypothesis = hypothesisOf(session);
  const approach = textOf(values, 'approach') ?? '';
  refuse(session, hypothesis, approach);
  if (!isApprovedHere(session, { path: opened.file.path, env: context.environment.env }))
    throw gateError(
      'you have not approved this: its file says that somebody did, and a file is copied',
      approveAgain(session),
    );
  const measured = await measure(session, context);
  if (measured === null) return EXIT.interrupted;
  const { before, after, flags, changed, outcome } = measured;
  const said = await opened.store.update(opened.file, (document, now) => {
    const id = `A${now.attempts.length + 1}`;
    const timestamp = new Date().toISOString();
    const entry = {
      id,
      timestamp,
      change,
      hypothesis,
      approach,
      before,
      after,
      outcome,
      flags: flags.join('\n'),
    };
    document.append('attempts', entry);
    document.setField('resolution', 'files_changed', encodeList(changed), { list: true });
    if (outcome === 'worked') {
      document.setField('resolution', 'fix', change);
      document.setField('resolution', 'verification', after);
      document.setProperty('status', 'verifying');
    }
    return id;
  });
  const strikes = strikesOf(opened.store.read(opened.file), { hypothesis, approach });
  const lines = [
    `${said}: ${outcome}; before: ${before}; after: ${after}`,
    ...flags.map((flag) => `flag: ${flag}`),
    ...(outcome === 'failed'
      ? [`strike ${strikes.length} of ${MOST_STRIKES}`, ...afterStrike(strikes)]
      : []),
  ];
  answer(context, 'attempt', opened, lines);
  if (outcome === 'unmeasured') return EXIT.invalid;
  return outcome === 'worked' ? EXIT.ok : EXIT.finding;
}

/** Throws where no attempt may be made. */
function refuse(session: Session, hypothesis: string, approach: string): void {
  if (session.status !== 'fixing' && session.status !== 'verifying')
    throw gateError('nothing is to be fixed yet', ['an approved diagnosis: trace session approve']);
  if (approvalOf(session) === 'changed') {
    throw gateError('the diagnosis was changed after it was approved', [
      'approve what stands there now: trace session diagnose, trace session approve',
    ]);
  }
  const strikes = strikesOf(session, { hypothesis, approach });
  if (strikes.length >= MOST_STRIKES)
    throw gateError(`three changes of this approach failed`, afterStrike(strikes));
}

interface Measured {
  readonly before: string;
  readonly after: string;
  readonly outcome: 'worked' | 'failed' | 'unmeasured';
  readonly flags: readonly string[];
  readonly changed: readonly string[];
}

/** Runs the reproduction before and after; null when it was interrupted. */
async function measure(session: Session, context: CommandContext): Promise<Measured | null> {
  const { cwd, env } = context.environment;
  const { diagnosis, reproduction } = session;
  const commit = diagnosis['approved_commit'] ?? '';
  const hasCommit = /^[0-9a-f]{7,64}$/.test(commit);
  const since = new Date(diagnosis['approved_at'] ?? 0);
  const diff = hasCommit
    ? await changeSince({ cwd, env }, commit, since)
    : { changed: [], added: [] };
  const proposed = decodeList(diagnosis['files'] ?? '');
  const flags = flagsOf(diff.added, { proposed, changed: diff.changed });
  const command = decodeList(reproduction['command'] ?? '');
  const rest = { flags, changed: diff.changed };
  if (command.length === 0)
    return {
      ...rest,
      before: 'unmeasured',
      after: 'unmeasured: there is no reproduction',
      outcome: 'unmeasured',
    };
  const { runs, limit } = trialsAsked(context.values, Number(reproduction['runs']) || 1);
  const trial = (folder: string): Promise<Trials> =>
    runTrials(command, { cwd: folder, runs, limit, context });
  let before: Trials | null = null;
  if (hasCommit) {
    before = await inWorktree({ cwd, env, commit, command }, trial);
    if (before.isInterrupted) return null;
  }
  const after = await trial(cwd);
  if (after.isInterrupted) return null;
  return {
    ...rest,
    before: before === null ? 'unmeasured: no git repository' : trialsText(before),
    after: trialsText(after),
    outcome: after.failing > 0 ? 'failed' : after.passing === 0 ? 'unmeasured' : 'worked',
  };
}

/** The one that the fix is for: the confirmed one, else what is in focus. */
function hypothesisOf({ hypotheses, focus }: Session): string {
  const confirmed = hypotheses.find(({ state }) => state === 'confirmed');
  return confirmed?.id ?? /^H\d+/.exec(focus.hypothesis)?.[0] ?? '';
}
