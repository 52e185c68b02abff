import { readFile } from 'node:fs/promises';
import type { Seconds } from '../../src/core/types.ts';
import type { Delay, Schedule } from './schedule.ts';

/** What one run under a schedule did. */

/** A point where a task went on. */
export interface Point {
  readonly task: string;
  readonly step: number;
  /** How long it waited there; 0 when it went on at once. */
  readonly turns: number;
  /** `path:line` in the program's own code, innermost first. */
  readonly frames: readonly string[];
  /** The innermost function; empty where it is not known. */
  readonly inside: string;
}

/** How a run ended, as far as runs are compared. */
export interface CourseEnd {
  /** Null when a signal ended it, or nothing did. */
  readonly code: number | null;
  readonly signal: string | null;
  /** `deadlock`: nothing could happen any more; `timeout`: it did not end within its limit. */
  readonly hang: 'deadlock' | 'timeout' | null;
}

export interface Course extends CourseEnd {
  readonly points: readonly Point[];
  /** The last that it wrote: untrusted. */
  readonly output: string;
  readonly seconds: Seconds;
}

/** A run that was ended by us, in the middle. */
export const ENDED: Course = {
  code: null,
  signal: 'SIGKILL',
  hang: null,
  points: [],
  output: '',
  seconds: 0,
};

/** Runs a program under schedules, one after another. */
export interface CourseRunner {
  run(schedule: Schedule, limit: Seconds): Promise<Course>;
  /** Ends every process that it started and removes its files. */
  close(): Promise<void>;
}

/** Whether two runs ended the same way. */
export function endsAlike(a: CourseEnd, b: CourseEnd): boolean {
  if (a.hang !== null || b.hang !== null) return (a.hang === null) === (b.hang === null);
  return a.code === b.code && a.signal === b.signal;
}

/** How a run ended, in words. */
export function describeCourseEnd({ code, signal, hang }: CourseEnd): string {
  if (hang === 'deadlock') return 'hung: every task waits for another';
  if (hang === 'timeout') return 'did not end in time';
  return signal === null ? `exited with ${code ?? 0}` : `was killed by ${signal}`;
}

/** The waits of a run, as a schedule takes them. */
export function delaysOf(points: readonly Point[]): readonly Delay[] {
  return points
    .filter(({ turns }) => turns !== 0)
    .map(({ task, step, turns }) => [task, step, turns] as const);
}

/** Where two runs part. */
export interface Divergence {
  /** Points that both met alike before. */
  readonly after: number;
  /** Null where the run had ended. */
  readonly one: Point | null;
  readonly other: Point | null;
}

/** The first point in which two runs differ; null when they met the same points in the same order. */
export function firstDivergence(one: readonly Point[], other: readonly Point[]): Divergence | null {
  const most = Math.max(one.length, other.length);
  for (let after = 0; after < most; after++) {
    const [a, b] = [one[after], other[after]];
    if (a === undefined || b === undefined || !isSamePoint(a, b))
      return { after, one: a ?? null, other: b ?? null };
  }
  return null;
}

function isSamePoint(a: Point, b: Point): boolean {
  return (
    a.task === b.task &&
    a.step === b.step &&
    a.turns === b.turns &&
    a.frames.join('\n') === b.frames.join('\n')
  );
}

/** The most points of a run that are kept: as many as the drivers write. */
const MOST_POINTS = 100_000;

/** What a run wrote into a file of its own; nothing when it came not so far. */
export async function textOf(path: string): Promise<string> {
  try {
    return await readFile(path, 'utf8');
  } catch {
    return '';
  }
}

/** What a driver wrote, line by line. A line that is cut off or none of ours is left out. */
export function readRecord(text: string): {
  points: readonly Point[];
  isDeadlock: boolean;
  modules: readonly string[];
} {
  const points: Point[] = [];
  let isDeadlock = false;
  let modules: readonly string[] = [];
  for (const line of text.split('\n')) {
    const values = parsed(line);
    if (values === null) continue;
    const [kind, ...rest] = values;
    if (kind === 'hang') isDeadlock = true;
    if (kind === 'modules' && isWords(rest[0])) modules = rest[0];
    const point = kind === 'point' && points.length < MOST_POINTS ? pointOf(rest) : null;
    if (point !== null) points.push(point);
  }
  return { points, isDeadlock, modules };
}

function parsed(line: string): readonly unknown[] | null {
  if (line === '') return null;
  try {
    const value: unknown = JSON.parse(line);
    return Array.isArray(value) ? value : null;
  } catch {
    return null;
  }
}

function pointOf([task, step, turns, frames, inside]: readonly unknown[]): Point | null {
  if (typeof task !== 'string' || !Number.isSafeInteger(step) || !Number.isSafeInteger(turns))
    return null;
  if (!isWords(frames)) return null;
  const where = typeof inside === 'string' ? inside : '';
  return { task, step: Number(step), turns: Number(turns), frames, inside: where };
}

function isWords(value: unknown): value is string[] {
  return Array.isArray(value) && value.every((one) => typeof one === 'string');
}
