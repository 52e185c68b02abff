import { UNIT_SECONDS } from './duration.ts';
import { printable } from './text.ts';

/** `name operator value`, as `--fail-on` and `--trigger` take it: the grammar and the units, not which names there are. */

export type Operator = '>' | '>=' | '<' | '<=';

/** What a number measures, which decides the units it may be written in. */
export type Dimension = 's' | 'ratio' | 'count' | '1/s' | 'By';

/** An expression, taken apart. */
export interface ComparisonText {
  readonly name: string;
  readonly operator: Operator;
  /** Of a value that is relative to another one; else empty. */
  readonly sign: '' | '+' | '-';
  readonly number: number;
  /** What follows the number, as written. */
  readonly unit: string;
}

/** Makes the error of an expression from what is wrong with it. */
export type Fail = (why: string) => Error;

/** Spaces are allowed around the operator. */
const EXPRESSION = /^\s*([^\s<>=]+)\s*(>=|<=|>|<)\s*(.*?)\s*$/;
/** A number, with a sign only where it is relative, and what follows. */
const VALUE = /^([+-]?)(\d+(?:\.\d+)?|\.\d+)\s*(.*)$/;

/** Takes `ttft.p99 > 500ms` apart. Throws what `fail` makes of what is wrong. */
export function readComparison(expression: string, fail: Fail): ComparisonText {
  const parts = EXPRESSION.exec(expression);
  if (parts === null) throw fail('it must be a metric, one of > >= < <=, and a value');
  const [, name = '', operator = '', text = ''] = parts;
  const value = VALUE.exec(text);
  if (value === null) {
    throw fail(
      text === '' ? `nothing follows ${operator}` : `'${printable(text, 40)}' is no value`,
    );
  }
  const [, sign = '', digits = '', unit = ''] = value;
  return {
    name,
    operator: operator as Operator,
    sign: sign as ComparisonText['sign'],
    number: Number(digits),
    unit,
  };
}

/** What a unit stands for in base units. */
const UNITS: Readonly<Record<Dimension, Readonly<Record<string, number>>>> = {
  s: UNIT_SECONDS,
  ratio: { '%': 0.01, '': 1 },
  count: { '': 1 },
  '1/s': { '': 1, '/s': 1, 'req/s': 1, 'requests/s': 1, 'tok/s': 1, 'tokens/s': 1 },
  By: {
    B: 1,
    kB: 1e3,
    KB: 1e3,
    MB: 1e6,
    GB: 1e9,
    TB: 1e12,
    KiB: 2 ** 10,
    MiB: 2 ** 20,
    GiB: 2 ** 30,
    TiB: 2 ** 40,
  },
};
const EXPECTED: Readonly<Record<Dimension, string>> = {
  s: 'a time, so us, ms, s, min, h or d must follow the number',
  ratio: 'a share, given as a percentage or a number from 0 to 1',
  count: 'a count, without a unit',
  '1/s': 'a rate: req/s, tok/s or nothing follows the number',
  By: 'a size, so B, KiB, MiB, GiB, TiB, kB, MB, GB or TB must follow the number',
};

/** What a unit stands for in base units of this dimension. Throws what `fail` makes of a unit that does not belong to it. */
export function factorOf(unit: string, dimension: Dimension, fail: Fail): number {
  const units = UNITS[dimension];
  const factor = Object.hasOwn(units, unit) ? units[unit] : undefined;
  if (factor !== undefined) return factor;
  const came = unit === '' ? 'no unit' : `'${printable(unit, 40)}'`;
  throw fail(`${came} came, and this is ${EXPECTED[dimension]}`);
}

/** Whether `value operator limit` is true. */
export function holds(value: number, operator: Operator, limit: number): boolean {
  switch (operator) {
    case '>':
      return value > limit;
    case '>=':
      return value >= limit;
    case '<':
      return value < limit;
    case '<=':
      return value <= limit;
  }
}
