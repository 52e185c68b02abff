import { cpSync, existsSync, mkdirSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { userInfo } from 'node:os';
import { EXIT, type ExitCode } from '../../core/exit-code.ts';
import type { Session } from '../../core/session.ts';
import { renderClosing } from '../../report/session/diagnosis.ts';
import { renderSessionJson, sessionDocument } from '../../report/session/document.ts';
import { isApprovedHere } from '../../session/approval-record.ts';
import { approvalOf } from '../../session/gates.ts';
import { decodeList } from '../../core/session-value.ts';
import type { Command, CommandContext, Usage } from '../command-line/command.ts';
import { toolVersion } from '../version.ts';
import { inWorktree } from './git.ts';
import {
  approveAgain,
  gateError,
  openSession,
  SESSION_HELP,
  SESSION_OPTIONS,
  surfaceOf,
  textOf,
} from './opening.ts';
import { retrospect } from './retrospective.ts';
import { TRIAL_OPTIONS, trialsAsked } from './reproduce.ts';
import { runTrials, type Trials, trialsText } from './trials.ts';

/** Of the reproduction, unless it was seen with more: none of 10 leaves at most 26 %. */
const LEAST_RUNS = 10;

const help = `trace session resolve - the fault is gone, and stays gone

Usage:
  trace session resolve --confirmed-by <who> --suite <command>
      --regression <command> [options]

Needs the reproduction at 0 of N (its bound is printed), somebody who confirms,
a test suite that is not worse than before, and a regression test that fails in
the commit that was approved and passes now. Then the file moves to resolved/.

Options:
      --confirmed-by <who>    who confirms that it is gone (default: the user at
                              this terminal)
      --suite <command>       the project's tests, for a shell
      --regression <command>  the test of this fault, for a shell
      --test-file <path>      a file of it that the approved commit does not
                              have; repeatable
      --no-git <reason>       why before and after cannot be compared
      --retrospective <path>  append what was learnt there
                              (docs/retrospectives.md, say)
  -n, --runs <n>              of the reproduction (default: as it was seen
                              failing, at least 10)
      --timeout <time>        what one run may take (default 300s)
${SESSION_HELP}
Exit codes:
  0    resolved
  1    refused: what is missing is named
  2    wrong usage
  3    no such session
  70   a bug in trace
  130  Ctrl-C

Examples:
  trace session resolve --confirmed-by ana --suite 'pytest -q' \\
      --regression 'pytest -q test_retry.py' --test-file test_retry.py

More: docs/session.md
`;

/** `trace session resolve` as its help shows it. */
export const sessionResolveUsage: Usage = {
  name: 'session resolve',
  summary: 'The fault is gone, and stays gone',
  help,
  options: {
    ...SESSION_OPTIONS,
    ...TRIAL_OPTIONS,
    'confirmed-by': { type: 'string' },
    suite: { type: 'string' },
    regression: { type: 'string' },
    'test-file': { type: 'string', multiple: true },
    'no-git': { type: 'string' },
    retrospective: { type: 'string' },
  },
  completes: {
    argument: [],
    values: { dir: 'folder', 'test-file': 'file', retrospective: 'file' },
  },
};

/** `trace session resolve`. */
export const sessionResolveCommand: Command = { ...sessionResolveUsage, run };

/** What was verified, a line each, and what is missing for the end. */
interface Verified {
  readonly lines: readonly string[];
  readonly missing: readonly string[];
}

async function run(context: CommandContext): Promise<ExitCode> {
  const { values, environment } = context;
  const opened = openSession(context);
  const { store } = opened;
  const session = store.read(opened.file);
  const who =
    textOf(values, 'confirmed-by') ?? (environment.stdout.isTTY ? userInfo().username : null);
  const unsure = who === null ? ['somebody who confirms: --confirmed-by <who>'] : [];
  const isOfCauseAlone = session.goal === 'find_root_cause_only';
  const isOwn = isApprovedHere(session, { path: opened.file.path, env: environment.env });
  const verified = isOfCauseAlone ? ofCauseAlone(session) : await verify(session, context, isOwn);
  if (verified === null) return EXIT.interrupted;
  const missing = [...verified.missing, ...unsure];
  if (missing.length > 0) {
    if (verified.missing.length === 0 && !isOfCauseAlone)
      await store.update(opened.file, (document) =>
        document.setProperty('status', 'awaiting_human_verify'),
      );
    throw gateError('not resolved yet', missing);
  }
  const now = new Date();
  await store.update(opened.file, (document) => {
    document.setField('resolution', 'verification', verified.lines.join('\n'));
    document.setField('resolution', 'confirmed_by', `${who ?? ''}, ${now.toISOString()}`);
    document.setProperty('status', 'resolved');
  });
  const file = opened.file.isResolved
    ? opened.file
    : store.move(opened.file, { resolved: true, now });
  const ended = store.read(file);
  retrospect(textOf(values, 'retrospective'), { session: ended, context });
  environment.stdout.write(
    values['json'] === true
      ? renderSessionJson('resolve', toolVersion(), {
          done: verified.lines,
          session: sessionDocument({ session: ended, path: file.path, isResolved: true }),
        })
      : renderClosing(ended, { surface: surfaceOf(context), path: file.path, outcome: 'COMPLETE' }),
  );
  return EXIT.ok;
}

function ofCauseAlone({ status, resolution }: Session): Verified {
  const missing = status === 'diagnosed' ? [] : ['a diagnosis: trace session diagnose …'];
  return { lines: [`root cause: ${resolution['root_cause'] ?? ''}`], missing };
}

/** Null when it was interrupted. */
async function verify(
  session: Session,
  context: CommandContext,
  isApprovedByUser: boolean,
): Promise<Verified | null> {
  const { values, environment } = context;
  const { cwd, env } = environment;
  const { reproduction, diagnosis } = session;
  const lines: string[] = [];
  const missing: string[] = [];
  if (approvalOf(session) !== 'approved')
    missing.push('an approved diagnosis: trace session approve');
  else if (!isApprovedByUser)
    missing.push('an approval of yours, which this file only claims', ...approveAgain(session));
  const commit = diagnosis['approved_commit'] ?? '';
  const hasCommit = /^[0-9a-f]{7,64}$/.test(commit);
  const noGit = textOf(values, 'no-git');
  if (!hasCommit && noGit === null) missing.push('a commit to compare with, or --no-git REASON');
  const suite = textOf(values, 'suite');
  const regression = textOf(values, 'regression');
  if (suite === null) missing.push("the project's tests: --suite <command>");
  if (regression === null) missing.push('a test of this fault: --regression <command>');
  if (missing.length > 0) return { lines, missing };
  const { runs, limit } = trialsAsked(
    values,
    Math.max(LEAST_RUNS, Number(reproduction['runs']) || 1),
  );
  const trial = (command: readonly string[], folder: string, n = 1): Promise<Trials> =>
    runTrials(command, { cwd: folder, runs: n, limit, context });
  const before = (command: readonly string[], brings: readonly string[]): Promise<Trials> =>
    inWorktree({ cwd, env, commit, command: brings }, (folder) => {
      for (const path of brings) bringOver(join(cwd, path), join(folder, path));
      return trial(command, folder);
    });
  const shell = (text: string): readonly string[] => ['sh', '-c', text];

  const command = decodeList(reproduction['command'] ?? '');
  if (command.length === 0) lines.push(`no reproduction: ${reproduction['no_repro'] ?? ''}`);
  else {
    const now = await trial(command, cwd, runs);
    if (now.isInterrupted) return null;
    lines.push(`reproduction: ${trialsText(now)}`);
    if (now.failing > 0 || now.passing === 0)
      missing.push(`the reproduction at 0 of N: ${trialsText(now)}`);
  }

  const files = values['test-file'];
  const tests = Array.isArray(files) ? files.map(String) : [];
  const passes = await trial(shell(regression ?? ''), cwd);
  if (passes.isInterrupted) return null;
  if (passes.passing === 0)
    missing.push(`a regression test that passes now: ${trialsText(passes)}`);
  if (hasCommit) {
    const failed = await before(shell(regression ?? ''), tests);
    if (failed.isInterrupted) return null;
    if (failed.failing === 0)
      missing.push(
        `a regression test that fails in the approved commit: there ${trialsText(failed)} (--test-file brings files along)`,
      );
    lines.push(`regression test: failed before, passes now (${regression ?? ''})`);
  } else lines.push(`regression test: passes now; before not compared, ${noGit ?? ''}`);

  const suiteNow = await trial(shell(suite ?? ''), cwd);
  if (suiteNow.isInterrupted) return null;
  if (suiteNow.passing > 0) lines.push(`tests pass (${suite ?? ''})`);
  else {
    const suiteBefore = hasCommit ? await before(shell(suite ?? ''), []) : null;
    if (suiteBefore?.isInterrupted === true) return null;
    if (suiteBefore !== null && suiteBefore.failing > 0)
      lines.push(`tests fail, as they did before (${suite ?? ''}): ${lastLine(suiteNow.output)}`);
    else
      missing.push(
        `tests that are not worse than before: ${lastLine(suiteNow.output) || trialsText(suiteNow)}`,
      );
  }
  return { lines, missing };
}

/** Also where the commit has an older one: the test is the one of now. */
function bringOver(from: string, to: string): void {
  if (!existsSync(from)) return;
  mkdirSync(dirname(to), { recursive: true });
  cpSync(from, to, { recursive: true });
}

const lastLine = (text: string): string => text.trimEnd().split('\n').at(-1)?.slice(0, 160) ?? '';
