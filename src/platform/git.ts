import { execFile } from 'node:child_process';
import { promisify } from 'node:util';
import type { Bytes, Seconds } from '../core/types.ts';
import { programFor, withAbsolutePath } from './find-program.ts';

/**
 * The one module that runs git. A checkout's own configuration, attributes and hooks name programs
 * that git would run for whoever looks at it; here none of them runs. Nothing is fetched either.
 */

/** How a run of git ended. Outputs are untrusted. */
type GitRun =
  | {
      readonly ended: 'exit';
      readonly code: number;
      readonly stdout: string;
      readonly stderr: string;
    }
  | { readonly ended: 'timeout' }
  | { readonly ended: 'not-started'; readonly reason: string };

export interface GitOptions {
  /** Where it is run: each worktree of a repository may have a configuration of its own. */
  readonly folder: string;
  readonly env: Readonly<Record<string, string | undefined>>;
  readonly limit: Seconds;
  /** Variables of git that are ours (`GIT_INDEX_FILE`). */
  readonly set?: Readonly<Record<string, string>>;
  readonly stdin?: string;
}

const run = promisify(execFile);
const OUTPUT_LIMIT: Bytes = 32 * 1024 * 1024;
/** More filters than anybody has; each takes four arguments. */
const FILTERS_LIMIT = 64;

/** Stronger than what any file says; an empty monitor is none for every release of git. */
const SETTINGS: readonly string[] = [
  'core.fsmonitor=',
  'core.hooksPath=/dev/null',
  'core.pager=cat',
  'core.editor=:',
  'core.sshCommand=false',
  'commit.gpgSign=false',
  'log.showSignature=false',
  'diff.ignoreSubmodules=all',
  'diff.relative=false',
  'status.submoduleSummary=false',
  'submodule.recurse=false',
  'protocol.allow=never',
  'gc.auto=0',
  'maintenance.auto=false',
];

/** Behind the verb: what no setting turns off, or what a file in the checkout may turn on again. */
const FLAGS: Readonly<Record<string, readonly string[]>> = {
  // `.gitmodules` decides whether git looks into a submodule, by that one's own configuration.
  diff: [
    '--no-ext-diff',
    '--no-textconv',
    '--no-color',
    '--src-prefix=a/',
    '--dst-prefix=b/',
    '--ignore-submodules=all',
  ],
  'diff-files': ['--no-ext-diff', '--no-textconv', '--ignore-submodules=all'],
  status: ['--ignore-submodules=all'],
  log: ['--no-show-signature', '--no-ext-diff', '--no-textconv'],
  commit: ['--no-gpg-sign'],
};

/** Of the caller's variables for git: who commits, and how far up a repository is looked for. */
const KEPT = /^GIT_(?:(?:AUTHOR|COMMITTER)_(?:NAME|EMAIL|DATE)|CEILING_DIRECTORIES)$/;

/** Runs git in a folder. Does not reject. */
export async function runGit(args: readonly string[], options: GitOptions): Promise<GitRun> {
  const program = programFor('git', options.env);
  if (program === null) return { ended: 'not-started', reason: 'no git on PATH' };
  const named = await start(program, [...settings([]), ...NAMES], options);
  // 1: there is none.
  if (named.ended !== 'exit' || named.code > 1) return named;
  const filters = filtersIn(named.stdout);
  if (filters === null)
    return {
      ended: 'not-started',
      reason: 'git is not run where a checkout has a filter that cannot be turned off',
    };
  const [verb = '', ...rest] = args;
  return start(program, [...settings(filters), verb, ...(FLAGS[verb] ?? []), ...rest], options);
}

const NAMES = ['config', '--null', '--name-only', '--get-regexp', '^(filter|hook)[.].*[.]'];

/** Settings that turn filters and named hooks off; null where no flag can say a name. */
function filtersIn(names: string): readonly string[] | null {
  const parts = names.split('\0').flatMap((name) => {
    const [, kind, own] = /^(filter|hook)\.([\s\S]+)\.[^.]+$/.exec(name) ?? [];
    return kind === undefined || own === undefined ? [] : [`${kind}.${own}`];
  });
  const found = [...new Set(parts)];
  // A flag ends its name at the first `=`.
  if (found.length > FILTERS_LIMIT || found.some((one) => one.includes('='))) return null;
  return found.flatMap((one) =>
    one.startsWith('hook.')
      ? [`${one}.enabled=false`]
      : [`${one}.clean=`, `${one}.smudge=`, `${one}.process=`, `${one}.required=false`],
  );
}

function settings(more: readonly string[]): readonly string[] {
  return ['--no-pager', ...[...SETTINGS, ...more].flatMap((one) => ['-c', one])];
}

async function start(
  program: string,
  args: readonly string[],
  { folder, env, limit, set = {}, stdin = '' }: GitOptions,
): Promise<GitRun> {
  const running = run(program, ['-C', folder, ...args], {
    timeout: limit * 1e3,
    killSignal: 'SIGKILL',
    maxBuffer: OUTPUT_LIMIT,
    env: { ...variables(env), ...set },
  });
  running.child.stdin?.on('error', () => {});
  running.child.stdin?.end(stdin);
  try {
    return { ended: 'exit', code: 0, ...(await running) };
  } catch (error) {
    return endOf(error);
  }
}

/** What a run says that did not end with 0. */
function endOf(error: unknown): GitRun {
  if (!(error instanceof Error)) throw error;
  const { code, killed, stdout, stderr } = error as Error & {
    readonly code?: number | string | null;
    readonly killed?: boolean;
    readonly stdout?: string;
    readonly stderr?: string;
  };
  if (typeof code === 'number')
    return { ended: 'exit', code, stdout: stdout ?? '', stderr: stderr ?? '' };
  if (killed === true && typeof code !== 'string') return { ended: 'timeout' };
  return { ended: 'not-started', reason: error.message };
}

function variables(
  env: Readonly<Record<string, string | undefined>>,
): Record<string, string | undefined> {
  const kept = Object.entries(env).filter(
    // Who called sudo is nobody whose checkout git may trust as root: that user could change it.
    ([name]) => (!name.startsWith('GIT_') || KEPT.test(name)) && !name.startsWith('SUDO_'),
  );
  return {
    ...withAbsolutePath(Object.fromEntries(kept)),
    LC_ALL: 'C',
    GIT_TERMINAL_PROMPT: '0',
    GIT_ASKPASS: '',
    GIT_OPTIONAL_LOCKS: '0',
    GIT_PAGER: 'cat',
    GIT_EDITOR: ':',
    GIT_SSH_COMMAND: 'false',
    // An empty list: a setting for one protocol would be stronger than that for all.
    GIT_ALLOW_PROTOCOL: '',
    GIT_NO_LAZY_FETCH: '1',
  };
}
