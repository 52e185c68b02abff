import { lstat, readdir, realpath, stat } from 'node:fs/promises';
import { join } from 'node:path';
import { TraceError } from '../core/errors.ts';
import { EXIT } from '../core/exit-code.ts';
import { printable } from '../core/text.ts';
import type { Bytes, Finding, RunEnd, RunStart, Seconds, Severity } from '../core/types.ts';
import { filesBeingWritten } from '../platform/open-files.ts';
import { parseSegmentName } from './format.ts';
import { readEnds } from './ends.ts';
import { locateSegments } from './locate.ts';

/** Which recordings there are, each in a few numbers, without reading them whole. */

/** One that has no end and was written so lately may still be written by a process that this user cannot see. */
const LATELY: Seconds = 60;

/** A recording, seen from outside. */
export interface RecordingSummary {
  /** The folder. */
  readonly path: string;
  /** Null where its first line cannot be read. */
  readonly start: RunStart | null;
  readonly end: RunEnd | null;
  /** `running`: somebody writes it; `cut`: its writer was killed; `whole`: it ended as it should. */
  readonly state: 'whole' | 'running' | 'cut';
  readonly startedAt: Seconds;
  /** Of the run, or of the last that was written. */
  readonly endedAt: Seconds;
  /** As the run itself counted them; null without an end. */
  readonly findings: Readonly<Record<Severity, number>> | null;
  readonly size: Bytes;
}

/** The recordings in these folders, newest first: the folder itself, or those that lie in it. Missing folders are empty ones. */
export async function listRecordings(
  folders: readonly string[],
): Promise<readonly RecordingSummary[]> {
  const paths = new Set<string>();
  for (const folder of folders) for (const path of await recordingsIn(folder)) paths.add(path);
  if (paths.size === 0) return [];
  const written = filesBeingWritten((path) => /\/telemetry[.\d]*\.jsonl$/.test(path));
  const summaries: RecordingSummary[] = [];
  for (const path of paths) {
    const summary = await summarise(path, written);
    if (summary !== null) summaries.push(summary);
  }
  return summaries.toSorted((a, b) => b.startedAt - a.startedAt || (a.path < b.path ? -1 : 1));
}

/** Like a missing one, but an error: for a folder that somebody named. */
export async function requireFolder(path: string): Promise<void> {
  const found = await stat(path).catch(() => null);
  if (found?.isDirectory() === true) return;
  const why = found === null ? 'is not there' : 'is not a folder';
  throw new TraceError('ERR_FOLDER_NOT_FOUND', `${printable(path)} ${why}`, {
    exitCode: EXIT.notFound,
    remedy:
      'Name a recording, or a folder that holds some; without one the default places are looked through.',
  });
}

async function recordingsIn(folder: string): Promise<readonly string[]> {
  if (await holdsSegments(folder)) return [folder];
  const found: string[] = [];
  for (const name of await namesIn(folder)) {
    const path = join(folder, name);
    // Not through symbolic links: a recording is listed, and removed, where it lies.
    if ((await lstat(path).catch(() => null))?.isDirectory() !== true) continue;
    if (await holdsSegments(path)) found.push(path);
  }
  return found;
}

async function holdsSegments(folder: string): Promise<boolean> {
  return (await namesIn(folder)).some((name) => parseSegmentName(name) !== undefined);
}

async function namesIn(folder: string): Promise<readonly string[]> {
  return readdir(folder).catch(() => []);
}

/** Null when it went away meanwhile. */
async function summarise(
  path: string,
  written: ReadonlySet<string>,
): Promise<RecordingSummary | null> {
  const files = await Promise.all(
    (await namesIn(path)).map(async (name) => ({
      name,
      found: await lstat(join(path, name)).catch(() => null),
    })),
  );
  const segments = files.filter(
    ({ name, found }) => parseSegmentName(name) !== undefined && found?.isFile() === true,
  );
  if (segments.length === 0) return null;
  const writtenAt = Math.max(...segments.map(({ found }) => (found?.mtimeMs ?? 0) / 1e3));
  const names = new Set(segments.map(({ name }) => join(path, name)));
  const located = await locateSegments(path).catch(() => []);
  const { start, end, lastAt, findings } = await readEnds(
    located.filter((segment) => names.has(segment.path)),
  );
  const real = await realpath(path).catch(() => path);
  const isWritten = segments.some(({ name }) => written.has(join(real, name)));
  const isRecent = Math.abs(Date.now() / 1e3 - writtenAt) < LATELY;
  return {
    path,
    start,
    end,
    state: end !== null && !isWritten ? 'whole' : isWritten || isRecent ? 'running' : 'cut',
    startedAt: start?.startedAt ?? writtenAt,
    endedAt: end?.endedAt ?? lastAt ?? writtenAt,
    findings: end === null ? null : count(findings),
    size: files.reduce((sum, { found }) => sum + (found?.size ?? 0), 0),
  };
}

function count(findings: readonly Finding[]): Readonly<Record<Severity, number>> {
  const of = (severity: Severity): number =>
    findings.filter((finding) => finding.severity === severity).length;
  return { critical: of('critical'), warning: of('warning'), note: of('note') };
}
