import { usageError, type TraceError } from '../../core/errors.ts';
import { printable } from '../../core/text.ts';
import type { Seconds } from '../../core/types.ts';
import type { OptionValues } from '../command-line/command.ts';
import { parseCount, parseDecimal, parseDuration } from '../command-line/parse.ts';

/** Reading single flags of `trace load`: the value, null where none was given, or a usage error. */
export class LoadValues {
  readonly #values: OptionValues;

  constructor(values: OptionValues) {
    this.#values = values;
  }

  isSet(name: string): boolean {
    return this.#values[name] === true;
  }

  has(name: string): boolean {
    return this.#values[name] !== undefined;
  }

  text(name: string): string | null {
    const value = this.#values[name];
    if (typeof value !== 'string') return null;
    if (value.trim() === '') throw usageError(`--${name} needs a value, got an empty one`);
    return value;
  }

  texts(name: string): readonly string[] {
    return [this.#values[name] ?? []].flat().filter((value) => typeof value === 'string');
  }

  count(name: string, least: number, most: number): number | null {
    const text = this.text(name);
    return text === null ? null : parseCount(text, { flag: `--${name}`, least, most });
  }

  decimal(name: string, least: number, most: number): number | null {
    const text = this.text(name);
    return text === null ? null : parseDecimal(text, { flag: `--${name}`, least, most });
  }

  duration(name: string, least: Seconds, most: Seconds): Seconds | null {
    const text = this.text(name);
    if (text === null) return null;
    return parseDuration(text, { flag: `--${name}`, bare: 's', least, most });
  }

  /** A usage error when more than one of these was given; the one that was, or null. */
  oneOf<T extends string>(names: readonly T[]): T | null {
    const [one, another] = names.filter((name) => this.has(name));
    if (one === 'concurrency' && another === 'rate') {
      throw usageError(
        '-c and -r contradict each other',
        'To send at a rate and never more than so many at once: -r with --max-concurrency.',
      );
    }
    if (one !== undefined && another !== undefined) throw contradiction(`--${one}`, `--${another}`);
    return one ?? null;
  }
}

export function contradiction(one: string, other: string): TraceError {
  return usageError(
    `${printable(one, 60)} and ${printable(other, 60)} contradict each other`,
    'Give one of them.',
  );
}
