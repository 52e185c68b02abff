import { usageError, type TraceError } from '../../core/errors.ts';
import { printable } from '../../core/text.ts';
import type { Bytes, Seconds } from '../../core/types.ts';
import { factorOf } from '../../core/comparison.ts';
import {
  boundedDuration,
  type DurationBounds,
  type DurationUnit,
  readDuration,
} from '../../core/duration.ts';

const MIB: Bytes = 2 ** 20;
const GIB: Bytes = 2 ** 30;

/** How a flag reads its duration. */
export interface DurationRule extends DurationBounds {
  /** The flag, as typed, for the message. */
  readonly flag: string;
  /** The unit of a number without one. */
  readonly bare: DurationUnit;
}

/** `10`, `10s`, `1.5m`, `50ms`, `1h`: a duration within the rule's bounds, or a usage error that shows what came. */
export function parseDuration(text: string, { flag, bare, ...bounds }: DurationRule): Seconds {
  return boundedDuration(readDuration(text, flag, bare), bounds, { name: flag, text });
}

/** How a flag reads its number. */
export interface NumberRule {
  /** The flag, as typed, for the message. */
  readonly flag: string;
  readonly least: number;
  readonly most: number;
}

/** `32`: a whole number within the rule's bounds, or a usage error that shows what came. */
export function parseCount(text: string, rule: NumberRule): number {
  return /^\d{1,15}$/.test(text.trim())
    ? within(Number(text), text, rule)
    : fail(rule.flag, text, 'a whole number such as 32');
}

/** `0.5`: a number within the rule's bounds, or a usage error that shows what came. */
export function parseDecimal(text: string, rule: NumberRule): number {
  return /^(?:\d{1,12}(?:\.\d{1,12})?|\.\d{1,12})$/.test(text.trim())
    ? within(Number(text), text, rule)
    : fail(rule.flag, text, 'a number such as 0.5 or 8');
}

function within(value: number, text: string, { flag, least, most }: NumberRule): number {
  if (value >= least && value <= most) return value;
  throw invalidValue(flag, text, `a number from ${least} to ${most}`);
}

function fail(flag: string, text: string, expected: string): never {
  throw invalidValue(flag, text, expected);
}

/** `512MiB`: a size within the rule's bounds. */
export function parseSize(text: string, { flag, least, most }: NumberRule): Bytes {
  const [, digits, unit = ''] = /^(\d{1,12}(?:\.\d{1,6})?)\s?([a-zA-Z]*)$/.exec(text.trim()) ?? [];
  const expected = 'a size such as 512MiB or 2GiB';
  if (digits === undefined) throw invalidValue(flag, text, expected);
  const size = Number(digits) * factorOf(unit, 'By', () => invalidValue(flag, text, expected));
  if (size >= least && size <= most) return size;
  throw invalidValue(flag, text, `a size from ${least / MIB}MiB to ${most / GIB}GiB`);
}

/** An http or https URL, as given (exporters append their own path). */
export function parseHttpUrl(text: string, flag: string): string {
  const url = URL.canParse(text) ? new URL(text) : null;
  if (url === null || (url.protocol !== 'http:' && url.protocol !== 'https:')) {
    throw invalidValue(flag, text, 'a URL such as http://127.0.0.1:4318');
  }
  return text;
}

/** One of a list of words. */
export function parseChoice<T extends string>(
  text: string,
  choices: readonly T[],
  flag: string,
): T {
  const choice = choices.find((one) => one === text);
  if (choice === undefined) throw invalidValue(flag, text, choices.join(' or '));
  return choice;
}

/** The usage error of a flag whose value is none that it takes: what it takes, and what came. */
export function invalidValue(flag: string, text: string, expected: string): TraceError {
  return usageError(`${flag} takes ${expected}, got '${printable(text, 60)}'`);
}
