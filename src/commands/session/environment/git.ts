import type { Seconds } from '../../../core/types.ts';
import { formatSeconds } from '../../../core/units.ts';
import { runGit } from '../../../platform/git.ts';
import type { EnvironmentFact, Surroundings } from './fact.ts';

const LIMIT: Seconds = 2;
const FILES_SHOWN = 20;

/** The commit, and the names of files that differ from it. */
export async function gitFacts({ cwd, env }: Surroundings): Promise<readonly EnvironmentFact[]> {
  const ask = (args: readonly string[]) => runGit(args, { folder: cwd, env, limit: LIMIT });
  const [head, status] = await Promise.all([
    ask(['log', '-1', '--format=%h %cI', '--abbrev=12']),
    ask(['status', '--porcelain=v1', '-z']),
  ]);
  if (head.ended === 'not-started')
    return [{ name: 'git_commit', value: null, reason: head.reason }];
  if (head.ended !== 'exit' || head.code !== 0) {
    const reason = head.ended === 'exit' ? 'not a git checkout with a commit' : `git ${head.ended}`;
    return [{ name: 'git_commit', value: null, reason }];
  }
  const commit: EnvironmentFact = {
    name: 'git_commit',
    value: /^[0-9a-f]{7,64} .*$/m.exec(head.stdout)?.[0] ?? null,
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
  const files = dirtyFiles(status.stdout);
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
