import { userInfo } from 'node:os';
import { usageError } from '../../core/errors.ts';
import type { ExitCode } from '../../core/exit-code.ts';
import { printable } from '../../core/text.ts';
import type { Session, Status } from '../../core/session.ts';
import {
  type ApprovalPlace,
  forgetApproval,
  isApprovedHere,
  keepApproval,
} from '../../session/approval-record.ts';
import { approvalOf, diagnosisHash, missingForFix } from '../../session/gates.ts';
import { readSession } from '../../session/session.ts';
import type { Command, CommandContext, Usage } from '../command-line/command.ts';
import { snapshotOf } from './git.ts';
import {
  answer,
  commandText,
  gateError,
  openSession,
  SESSION_HELP,
  SESSION_OPTIONS,
  textOf,
} from './opening.ts';
import { readPlanning } from './planning-config.ts';

const approveHelp = `trace session approve - let the proposed fix be made

Usage:
  trace session approve [options]

Writes down who approved which diagnosis, when, and at which commit, and shows
the command that attempts will run. A change to the diagnosis voids it. Needs a
reproduction that was seen failing. What a file says that was approved by others
counts for nothing: approve it again, which keeps its commit.

Options:
      --approved-by <who>  who did (default: the user at this terminal)
      --no-repro <reason>  why there is no reproduction; the end shows it
${SESSION_HELP}
Exit codes:
  0    approved: the session is fixing
  1    refused: what is missing is named
  2    wrong usage
  3    no such session
  70   a bug in trace

Examples:
  trace session approve --approved-by ana

More: docs/session.md
`;

const rejectHelp = `trace session reject - the diagnosis is not it

Usage:
  trace session reject --because <text>

Goes back to the hypotheses, with the reason as evidence.

Options:
      --because <text>  what does not fit
${SESSION_HELP}
Exit codes:
  0    back to investigating
  1    refused: there is no diagnosis
  2    wrong usage
  3    no such session
  70   a bug in trace

Examples:
  trace session reject --because 'it also happens with one user'

More: docs/session.md
`;

/** `trace session approve` as its help shows it. */
export const sessionApproveUsage: Usage = {
  name: 'session approve',
  summary: 'Let the proposed fix be made',
  help: approveHelp,
  options: {
    ...SESSION_OPTIONS,
    'approved-by': { type: 'string' },
    'no-repro': { type: 'string' },
  },
  completes: { argument: [], values: { dir: 'folder' } },
};

/** `trace session reject` as its help shows it. */
export const sessionRejectUsage: Usage = {
  name: 'session reject',
  summary: 'The diagnosis is not it',
  help: rejectHelp,
  options: { ...SESSION_OPTIONS, because: { type: 'string' } },
  completes: { argument: [], values: { dir: 'folder' } },
};

/** `trace session approve`. */
export const sessionApproveCommand: Command = { ...sessionApproveUsage, run: approve };

/** `trace session reject`. */
export const sessionRejectCommand: Command = { ...sessionRejectUsage, run: reject };

async function approve(context: CommandContext): Promise<ExitCode> {
  const { values, environment } = context;
  const opened = openSession(context);
  const who = approver(context);
  const commit = await snapshotOf(environment);
  const noRepro = textOf(values, 'no-repro');
  const planning = readPlanning(opened.store.folder);
  if (planning.remark !== null) environment.stderr.write(`trace: ${planning.remark}\n`);
  const place = { path: opened.file.path, env: environment.env };
  const approved = await opened.store.update(opened.file, (document, session) => {
    const reproduction =
      noRepro === null ? session.reproduction : { ...session.reproduction, no_repro: noRepro };
    const isClaimed = claimsApproval(session, place);
    const status = isClaimed ? 'diagnosed' : session.status;
    const missing = missingForFix({ ...session, reproduction, status }, planning);
    if (missing.length > 0) throw gateError('no fix yet', missing);
    if (noRepro !== null) document.setField('reproduction', 'no_repro', noRepro);
    const set = (key: string, value: string): void => document.setField('diagnosis', key, value);
    set('hash', diagnosisHash(session.diagnosis));
    set('approved_by', who);
    // Of a fix that is under way, what was there before it began.
    if (!isClaimed) {
      set('approved_at', new Date().toISOString());
      set('approved_commit', commit ?? 'none: no git repository');
      document.setProperty('status', 'fixing');
    }
    const now = readSession(session.slug, document.toString());
    keepApproval(now, place);
    return now;
  });
  return answer(context, 'approve', opened, [
    `approved by ${who}`,
    `attempts run: ${commandText(approved)}`,
    `compared with: ${printable(approved.diagnosis['approved_commit'] ?? '')}`,
  ]);
}

const UNDER_WAY: readonly Status[] = ['fixing', 'verifying', 'awaiting_human_verify'];

/** Whether the file tells of an approval that this user never gave. */
function claimsApproval(session: Session, place: ApprovalPlace): boolean {
  return (
    UNDER_WAY.includes(session.status) &&
    approvalOf(session) === 'approved' &&
    !isApprovedHere(session, place)
  );
}

/** Who approves; whoever is not at a terminal is marked so. */
function approver({ values, environment }: CommandContext): string {
  const named = textOf(values, 'approved-by');
  if (named !== null && named.trim() !== '')
    return environment.stdout.isTTY ? named : `${named} (not at a terminal)`;
  if (environment.stdout.isTTY) return userInfo().username;
  throw usageError('who approves?', 'Without a terminal --approved-by names who did.');
}

async function reject(context: CommandContext): Promise<ExitCode> {
  const because = textOf(context.values, 'because');
  if (because === null) throw usageError('--because is missing', 'What does not fit?');
  const opened = openSession(context);
  await opened.store.update(opened.file, (document, { status }) => {
    if (status !== 'diagnosed' && status !== 'fixing' && status !== 'verifying')
      throw gateError('there is no diagnosis to reject', ['trace session diagnose …']);
    const at = new Date().toISOString();
    document.append('evidence', {
      timestamp: at,
      checked: 'diagnosis',
      found: `rejected: ${because}`,
    });
    for (const key of ['hash', 'approved_by', 'approved_at', 'approved_commit'])
      document.setField('diagnosis', key, '');
    forgetApproval({ path: opened.file.path, env: context.environment.env });
    document.setProperty('status', 'investigating');
  });
  return answer(context, 'reject', opened, ['back to the hypotheses']);
}
