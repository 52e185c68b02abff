import type { Seconds } from '../../../core/types.ts';
import { formatSeconds } from '../../../core/units.ts';
import { findProgram } from '../../../platform/find-program.ts';
import { runBriefly } from '../../../platform/run-briefly.ts';
import type { EnvironmentFact, Surroundings } from './fact.ts';

const LIMIT: Seconds = 2;
const FILES_SHOWN = 20;
/** A checkout may name programs that git would run for us, and a lock of its index is not ours to take. */
const CAREFULLY = [
  '--no-optional-locks',
  '-c',
  'core.fsmonitor=false',
  '-c',
  'core.hooksPath=/dev/null',
];

/** The commit, and the names of files that differ from it. */
export async function gitFacts({ cwd, env }: Surroundings): Promise<readonly EnvironmentFact[]> {
  const program = findProgram('git', env['PATH']);
  if (program === null) return [{ name: 'git_commit', value: null, reason: 'no git on PATH' }];
  const ask = (args: readonly string[]) =>
    runBriefly(program, ['-C', cwd, ...CAREFULLY, ...args], LIMIT, { ...env, LC_ALL: 'C' });
  const [head, status] = await Promise.all([
    ask(['log', '-1', '--no-show-signature', '--format=%h %cI', '--abbrev=12']),
    ask(['status', '--porcelain=v1', '-z', '--ignore-submodules=all']),
  ]);
  if (head.ended !== 'exit' || head.code !== 0) {
    const reason = head.ended === 'exit' ? 'not a git checkout with a commit' : `git ${head.ended}`;
    return [{ name: 'git_commit', value: null, reason }];
  }
  const commit: EnvironmentFact = {
    name: 'git_commit',
    value: /^[0-9a-f]{7,64} .*$/m.exec(head.output)?.[0] ?? null,
    reason: null,
  };
  if (status.ended !== 'exit' || status.code !== 0)
    return [
      commit,
      {
        name: 'git_dirty',
        value: null,
        reason: `git status did not answer within ${formatSeconds(LIMIT)}`,
      },
    ];
  const files = dirtyFiles(status.output);
  const more = files.length > FILES_SHOWN ? `, and ${files.length - FILES_SHOWN} more` : '';
  return [
    commit,
    {
      name: 'git_dirty',
      value: files.length === 0 ? 'no' : `${files.slice(0, FILES_SHOWN).join(', ')}${more}`,
      reason: null,
    },
  ];
}

/** Of `XY name` ended by NUL; a renamed file has its old name behind it. */
function dirtyFiles(output: string): readonly string[] {
  const files: string[] = [];
  const parts = output.split('\0');
  for (let i = 0; i < parts.length; i++) {
    const part = parts[i] ?? '';
    if (part.length < 4) continue;
    files.push(part.slice(3));
    if (/^R|^.R/.test(part)) i++;
  }
  return files;
}
