import { createHash } from 'node:crypto';
import { stat, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { TraceError } from '../../src/core/errors.ts';
import { EXIT } from '../../src/core/exit-code.ts';
import { printable } from '../../src/core/text.ts';
import type { Seconds } from '../../src/core/types.ts';
import { formatSeconds } from '../../src/core/units.ts';
import { readOutside } from '../../src/platform/outside-file.ts';
import { runBriefly } from '../../src/platform/run-briefly.ts';
import { environmentCache } from './environment.ts';
import { type ReleaseRange, VERSION } from './pins.ts';
import { makeFolder } from '../../src/platform/make-folder.ts';

/** The releases of a package, as its registry tells pip or npm. */

/** A registry that is slow to answer. */
const LIMIT: Seconds = 120;
/** A list of releases takes some kB. */
const SIZE_LIMIT = 4 * 1024 * 1024;
/** Releases are added, and seldom taken away. */
const KEPT_FOR: Seconds = 86_400;
/** More between two releases than any package has; what is beyond is not believed. */
const MOST_RELEASES = 5000;

export interface ReleasesRequest {
  readonly language: 'python' | 'node';
  readonly range: ReleaseRange;
  /** An interpreter that has pip: that of an environment; unused for Node. */
  readonly python: string;
  /** For XDG_CACHE_HOME. */
  readonly env: Readonly<Record<string, string | undefined>>;
}

/** The releases from `from` to `to`, both included, oldest first, without pre-releases in between. Rejects with a TraceError. */
export async function releasesBetween(request: ReleasesRequest): Promise<readonly string[]> {
  const { language, range, python, env } = request;
  const key = createHash('sha256')
    .update(JSON.stringify([language, python, range]))
    .digest('hex');
  const cache = environmentCache(env);
  const path = join(cache, `releases-${key.slice(0, 20)}.json`);
  const kept = await keptList(path);
  if (kept !== null) return kept;
  const all = language === 'python' ? await fromPip(python, range) : await fromNpm(range);
  const [from, to] = [all.indexOf(range.from), all.indexOf(range.to)];
  const missing = from === -1 ? range.from : to === -1 ? range.to : null;
  if (missing !== null) throw noReleases(range, `the registry names no ${missing} among them`);
  if (from > to) throw noReleases(range, `${range.from} is newer than ${range.to}`);
  const releases = all.slice(from, to + 1);
  makeFolder(cache);
  await writeFile(path, JSON.stringify(releases), { mode: 0o600 });
  return releases;
}

async function keptList(path: string): Promise<readonly string[] | null> {
  try {
    const { mtimeMs } = await stat(path);
    if (Date.now() - mtimeMs > KEPT_FOR * 1e3) return null;
    return versionsIn(JSON.parse(await readOutside(path, SIZE_LIMIT)));
  } catch {
    return null;
  }
}

/** All releases for this interpreter; pip names the newest first. */
async function fromPip(python: string, range: ReleaseRange): Promise<readonly string[]> {
  const name = range.name.replace(/\[.*/, '');
  const isEarly = [range.from, range.to].some((version) => /[a-z]/i.test(version));
  const flags = ['--disable-pip-version-check', ...(isEarly ? ['--pre'] : [])];
  const args = ['-m', 'pip', 'index', 'versions', ...flags, name];
  const output = await asked(python, args, range);
  const listed = /^Available versions: (.*)$/m.exec(output)?.[1] ?? '';
  const versions = versionsIn(listed.split(', '));
  if (versions === null) throw noReleases(range, said(output));
  return versions.toReversed();
}

/** Those between the ends, which npm sorts. */
async function fromNpm(range: ReleaseRange): Promise<readonly string[]> {
  const { name, from, to } = range;
  const args = ['view', `${name}@>=${from} <=${to}`, 'version', '--json', '--loglevel=error'];
  const output = await asked('npm', args, range);
  try {
    const answer: unknown = JSON.parse(output);
    return versionsIn(Array.isArray(answer) ? answer : [answer]) ?? [];
  } catch {
    throw noReleases(range, said(output));
  }
}

async function asked(
  program: string,
  args: readonly string[],
  range: ReleaseRange,
): Promise<string> {
  const run = await runBriefly(program, args, LIMIT);
  if (run.ended === 'not-started') throw noReleases(range, printable(run.reason));
  if (run.ended === 'timeout') throw noReleases(range, `no answer within ${formatSeconds(LIMIT)}`);
  if (run.code !== 0) throw noReleases(range, said(run.output));
  return run.output;
}

/** A list that holds versions and nothing else; null for any other. */
function versionsIn(value: unknown): readonly string[] | null {
  if (!Array.isArray(value) || value.length === 0 || value.length > MOST_RELEASES) return null;
  const isVersion = (one: unknown): one is string => typeof one === 'string' && VERSION.test(one);
  return value.every(isVersion) ? value : null;
}

function said(output: string): string {
  const line = output
    .trim()
    .split('\n')
    .findLast((one) => /error/i.test(one));
  return printable(line ?? output.trim().slice(-200), 300);
}

function noReleases({ name, from, to }: ReleaseRange, why: string): TraceError {
  const what = `the releases of ${name} from ${from} to ${to} are not known`;
  return new TraceError('ERR_RELEASES', `${what}: ${why}`, {
    exitCode: EXIT.notFound,
    remedy: 'Name two releases that the registry has for this interpreter, the older one first.',
  });
}
