import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join, relative, resolve } from 'node:path';
import { TraceError, usageError } from '../../src/core/errors.ts';
import { EXIT } from '../../src/core/exit-code.ts';
import { printable } from '../../src/core/text.ts';
import { formatSeconds } from '../../src/core/units.ts';
import { runGit } from '../../src/platform/git.ts';
import type { ReproParameters } from '../parameters/parameters.ts';
import type { TrialEnvironment } from '../trials/run-trial.ts';
import { judgeState, type StateJudgement } from './judge-state.ts';

/** Git answers at once; a checkout of a large tree takes longer. */
const GIT_LIMIT = 120;
/** Steps of a bisection of a million commits, and as many that could not be tested. */
const MOST_STEPS = 60;

/** What is bisected, and how a commit is judged. */
export interface CommitsOptions {
  readonly folder: string;
  readonly parameters: ReproParameters;
  readonly environment: TrialEnvironment;
  /** A repository, and within it a commit without and one with the fault. */
  readonly repository: string;
  readonly good: string;
  readonly bad: string;
  /** Trials of a commit before it counts as good; one that reproduces makes it bad at once. */
  readonly runs: number;
  readonly seed: number;
  readonly abort: AbortSignal;
  readonly onStep: (step: CommitStep) => void;
}

/** A commit that was tried. */
export interface CommitStep extends StateJudgement {
  readonly commit: string;
}

/** The commit that brought the fault, as git names it, or null where too many could not be tested. */
export interface FirstBad {
  readonly commit: string;
  readonly subject: string;
}

/**
 * Bisects the commits between good and bad, in a worktree of its own that is removed afterwards; the repository's own files and HEAD stay as they
 * are. The function is imported from the worktree: `call.path` must lie within the repository.
 */
export async function bisectCommits(options: CommitsOptions): Promise<FirstBad | null> {
  const { repository, good, bad, abort, onStep } = options;
  const scratch = await mkdtemp(join(tmpdir(), 'trace-bisect-'));
  const worktree = join(scratch, 'tree');
  const add = ['worktree', 'add', '--no-checkout', '--detach', '--quiet', worktree, bad];
  await git(repository, ...add);
  try {
    // By a run of its own: what its configuration includes there is known only where it is.
    await git(worktree, 'reset', '--hard', '--quiet');
    const parameters = await within(options, worktree);
    const worst = await judgeCommit({ ...options, parameters }, bad);
    if (worst.judged !== 'bad' && !abort.aborted) {
      throw new TraceError(
        'ERR_NOT_REPRODUCED',
        `in ${worst.trials} trials it did not happen at ${printable(bad, 80)} itself`,
        { exitCode: EXIT.invalid, remedy: 'Raise --runs, or name a commit that has the fault.' },
      );
    }
    let said = await git(worktree, 'bisect', 'start', bad, good, '--');
    for (let step = 0; step < MOST_STEPS && !abort.aborted; step++) {
      const first = /^([0-9a-f]{7,64}) is the first bad commit/m.exec(said)?.[1];
      if (first !== undefined) return { commit: first, subject: await subjectOf(worktree, first) };
      if (/only '?skip'?ped commits left|We cannot bisect more/i.test(said)) return null;
      const commit = (await git(worktree, 'rev-parse', 'HEAD')).trim();
      const judged = await judgeCommit({ ...options, parameters }, commit);
      if (abort.aborted) return null;
      onStep(judged);
      said = await git(worktree, 'bisect', judged.judged);
    }
    return null;
  } finally {
    await git(repository, 'worktree', 'remove', '--force', worktree).catch(() => '');
    await rm(scratch, { recursive: true, force: true });
    await git(repository, 'worktree', 'prune').catch(() => '');
  }
}

async function judgeCommit(options: CommitsOptions, commit: string): Promise<CommitStep> {
  return { commit, ...(await judgeState(options)) };
}

/** The parameters with the function taken from the worktree. */
async function within(
  { folder, parameters, repository }: CommitsOptions,
  worktree: string,
): Promise<ReproParameters> {
  const { call } = parameters;
  if (call === undefined) {
    throw usageError('commits can be bisected for a function that is called, not for traffic');
  }
  const top = (await git(repository, 'rev-parse', '--show-toplevel')).trim();
  const path = relative(top, resolve(folder, call.path ?? '.'));
  if (path.startsWith('..')) {
    throw usageError(
      `${printable(call.target)} is imported from outside of ${printable(top)}`,
      'Name the repository that holds it with --repository.',
    );
  }
  return { ...parameters, call: { ...call, path: join(worktree, path) } };
}

async function subjectOf(worktree: string, commit: string): Promise<string> {
  return printable((await git(worktree, 'log', '-1', '--format=%s', commit)).trim(), 120);
}

async function git(directory: string, ...args: readonly string[]): Promise<string> {
  const run = await runGit(args, { folder: directory, env: process.env, limit: GIT_LIMIT });
  if (run.ended === 'exit' && run.code === 0) return run.stdout;
  const why =
    run.ended === 'exit'
      ? `${run.stdout}${run.stderr}`.trim()
      : run.ended === 'timeout'
        ? `no answer within ${formatSeconds(GIT_LIMIT)}`
        : run.reason;
  throw new TraceError('ERR_GIT_FAILED', `git ${args[0] ?? ''} failed: ${printable(why, 300)}`, {
    exitCode: EXIT.usage,
    remedy: 'Give a commit without and one with the fault, as git names them: --commits v1.0..HEAD',
  });
}
