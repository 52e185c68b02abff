import { dirname, join } from 'node:path';
import { readOutsideSync } from '../../platform/outside-file.ts';
import { member } from './sources/imported.ts';

/** GSD's own settings, of which two matter here: `workflow.tdd_mode` and `commit_docs` in `.planning/config.json`. */

const SIZE_LIMIT = 1024 * 1024;

/** What the project asks for, and what it probably meant and does not count. */
export interface Planning {
  readonly isTddMode: boolean;
  /** Whether each change of a session's file is committed. */
  readonly commitsDocs: boolean;
  readonly remark: string | null;
}

/** Of the project whose sessions lie in `folder` (`…/.planning/debug`). Without a readable file nothing is asked for. */
export function readPlanning(folder: string): Planning {
  const path = join(dirname(folder), 'config.json');
  let value: unknown;
  try {
    value = JSON.parse(readOutsideSync(path, SIZE_LIMIT).toString('utf8'));
  } catch {
    return { isTddMode: false, commitsDocs: false, remark: null };
  }
  const mode = member(member(value, 'workflow'), 'tdd_mode');
  const commits = member(value, 'commit_docs') ?? member(member(value, 'planning'), 'commit_docs');
  const isIgnored = member(value, 'tdd_mode') !== undefined && mode === undefined;
  return {
    isTddMode: isOn(mode),
    commitsDocs: isOn(commits),
    remark: isIgnored ? `tdd_mode at the top of ${path} is ignored: it is workflow.tdd_mode` : null,
  };
}

const isOn = (value: unknown): boolean => value === true || value === 'true';
