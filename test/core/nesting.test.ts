import { describe, expect, it } from 'vitest';
import { isOverNested } from '../../src/core/nesting.ts';

const isOver = (text: string): boolean => isOverNested(Buffer.from(text));
/** Long enough to be looked at. */
const FILL = ' '.repeat(70_000);
const nested = (depth: number): string => `${'['.repeat(depth)}${']'.repeat(depth)}${FILL}`;

describe('a text of JSON', () => {
  it('may be as deep as what V8 sends of a stack, and no deeper', () => {
    expect(isOver(nested(999))).toBe(false);
    expect(isOver(nested(1000))).toBe(false);
    expect(isOver(nested(1001))).toBe(true);
    expect(isOver(`${'{"a":'.repeat(1001)}1${'}'.repeat(1001)}${FILL}`)).toBe(true);
    expect(isOver(`${'[{"a":'.repeat(400)}1${'}]'.repeat(400)}${FILL}`)).toBe(false);
  });

  it('may be wide, within a million', () => {
    expect(isOver(`[${'[],'.repeat(900_000)}1]`)).toBe(false);
    expect(isOver(`[${'{},'.repeat(1_000_000)}1]`)).toBe(true);
  });

  it('is not deep by what stands in its strings', () => {
    const brackets = '['.repeat(70_000);
    expect(isOver(JSON.stringify({ a: brackets }))).toBe(false);
    expect(isOver(JSON.stringify({ a: `"\\"${brackets}` }))).toBe(false);
    expect(isOver(JSON.stringify({ [`\\\\${brackets}\\`]: `${brackets}\\\\\\"` }))).toBe(false);
    // The string ends before them.
    expect(isOver(`{"a\\\\":${brackets}`)).toBe(true);
    expect(isOver(`{"a\\\\\\"":${brackets}`)).toBe(true);
    expect(isOver(`{"a\\":${brackets}`)).toBe(false);
  });

  it('that never ends, or closes what was not opened, is looked through once', () => {
    expect(isOver(`"${'\\'.repeat(100_001)}`)).toBe(false);
    expect(isOver(']'.repeat(100_000))).toBe(false);
    expect(isOver('"\\"'.repeat(100_000))).toBe(false);
  });

  it('is not looked at where it is too short to cost anything', () => {
    expect(isOver('['.repeat(60_000))).toBe(false);
    expect(isOver('['.repeat(70_000))).toBe(true);
  });
});
