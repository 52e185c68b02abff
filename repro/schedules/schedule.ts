import { deflateRawSync, inflateRawSync } from 'node:zlib';
import { EXIT } from '../../src/core/exit-code.ts';
import { TraceError, usageError } from '../../src/core/errors.ts';
import { printable } from '../../src/core/text.ts';
import type { Ratio } from '../../src/core/types.ts';

/** When tasks of a program go on: a value, and as a string short enough to paste. */

/** Runtimes whose schedules can be chosen. */
export type ScheduleLanguage = 'python' | 'node';

/**
 * One task waits once: who (a task of asyncio by its place in the tree of tasks; in Node, the place of an `await`), at its how manieth point,
 * and how long: turns of the loop; in Node, below zero, turns of the queue of microtasks.
 */
export type Delay = readonly [task: string, step: number, turns: number];

/** What holds for a schedule whatever its strategy. */
export interface ScheduleSetting {
  /** `virtual`: time passes only where everybody waits, and then at once. Python only. */
  readonly clock: 'virtual' | 'real';
  /** Also delays at lines of threads. Python only. */
  readonly threads: boolean;
  /** Installed packages that are explored as if they were the program's own. */
  readonly include: readonly string[];
}

/** How the waits of a run are chosen. */
export type Strategy =
  | { readonly strategy: 'none' }
  | {
      readonly strategy: 'random';
      readonly seed: number;
      readonly rate: Ratio;
      readonly most: number;
    }
  | {
      readonly strategy: 'targeted';
      readonly seed: number;
      readonly rate: Ratio;
      readonly most: number;
      /** `file.py:37` */
      readonly places: readonly string[];
    }
  | {
      readonly strategy: 'pct';
      readonly seed: number;
      readonly depth: number;
      readonly points: number;
    }
  | { readonly strategy: 'explicit'; readonly delays: readonly Delay[] };

export type Schedule = ScheduleSetting & Strategy;

const PREFIXES: Readonly<Record<ScheduleLanguage, string>> = { python: 'py', node: 'nd' };
/** Of the form of the strings; a later one is refused, because it would be read wrongly. */
const VERSION = 1;
/** Characters of a string, and bytes of what it holds: ten thousand delays fit. */
const LONGEST = 64 * 1024;
const LARGEST = 2 ** 20;

/** The schedule as a string: `py1.` or `nd1.` and base64url. The same for the same schedule. */
export function writeSchedule(language: ScheduleLanguage, schedule: Schedule): string {
  const text = deflateRawSync(JSON.stringify(schedule), { level: 9 }).toString('base64url');
  return `${PREFIXES[language]}${VERSION}.${text}`;
}

/** What {@link writeSchedule} wrote. A TraceError for anything else: exit 5 for a newer form, 2 for what is none. */
export function readSchedule(text: string): { language: ScheduleLanguage; schedule: Schedule } {
  const [, prefix = '', version = '', body = ''] =
    /^([a-z]{2})(\d{1,4})\.([\w-]+)$/.exec(text.trim()) ?? [];
  const language = (['python', 'node'] as const).find((one) => PREFIXES[one] === prefix);
  if (language === undefined || text.length > LONGEST) throw notOne(text);
  if (Number(version) !== VERSION) {
    throw new TraceError(
      'ERR_SCHEDULE_VERSION',
      `the schedule is of form ${Number(version)}, and this trace reads form ${VERSION}`,
      { exitCode: EXIT.unsupported, remedy: 'Use the trace that printed it, or explore again.' },
    );
  }
  try {
    const bytes = inflateRawSync(Buffer.from(body, 'base64url'), { maxOutputLength: LARGEST });
    const value: unknown = JSON.parse(bytes.toString());
    if (isSchedule(value)) return { language, schedule: value };
  } catch {
    // Below: what cannot be unpacked is no schedule.
  }
  throw notOne(text);
}

function notOne(text: string): TraceError {
  return usageError(
    `'${printable(text, 40)}' is not a schedule`,
    'trace repro explore prints them: py1.… for Python, nd1.… for Node',
  );
}

type Fields = Readonly<Record<string, unknown>>;

function isSchedule(value: unknown): value is Schedule {
  if (typeof value !== 'object' || value === null) return false;
  const fields = value as Fields;
  return (
    (fields['clock'] === 'virtual' || fields['clock'] === 'real') &&
    typeof fields['threads'] === 'boolean' &&
    isWords(fields['include']) &&
    isStrategy(fields)
  );
}

function isStrategy(fields: Fields): boolean {
  switch (fields['strategy']) {
    case 'none':
      return true;
    case 'random':
      return isCount(fields['seed']) && isRatio(fields['rate']) && isCount(fields['most']);
    case 'targeted':
      return (
        isCount(fields['seed']) &&
        isRatio(fields['rate']) &&
        isCount(fields['most']) &&
        isWords(fields['places'])
      );
    case 'pct':
      return isCount(fields['seed']) && isCount(fields['depth']) && isCount(fields['points']);
    case 'explicit':
      return Array.isArray(fields['delays']) && fields['delays'].every(isDelay);
    default:
      return false;
  }
}

function isDelay(value: unknown): value is Delay {
  return (
    Array.isArray(value) &&
    value.length === 3 &&
    typeof value[0] === 'string' &&
    isCount(value[1]) &&
    Number.isSafeInteger(value[2])
  );
}

function isCount(value: unknown): value is number {
  return Number.isSafeInteger(value) && Number(value) >= 0;
}

function isRatio(value: unknown): value is number {
  return typeof value === 'number' && value >= 0 && value <= 1;
}

function isWords(value: unknown): value is string[] {
  return Array.isArray(value) && value.every((one) => typeof one === 'string');
}
