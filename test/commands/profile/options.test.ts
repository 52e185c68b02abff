import { describe, expect, it } from 'vitest';
import { parseProfileOptions } from '../../../src/commands/profile/options.ts';

describe('--native', () => {
  it('is either tool or one of them, and looks twice a second', () => {
    expect(parseProfileOptions({}, ['7'])).toMatchObject({ native: null, rate: 100 });
    expect(parseProfileOptions({ native: 'any' }, ['7'])).toMatchObject({ native: 'any', rate: 2 });
    const chosen = parseProfileOptions({ native: 'py-spy', rate: '10' }, ['7']);
    expect(chosen).toMatchObject({ native: 'py-spy', rate: 10 });
    expect(() => parseProfileOptions({ native: 'gdb' }, ['7'])).toThrow(/--native/);
  });

  it.each([
    [{ mode: 'gil' }, '--mode gil'],
    [{ mode: 'blocked' }, '--mode blocked'],
    [{ exact: true }, '--exact'],
    [{ subprocesses: true }, '--subprocesses'],
    [{ inspect: 'open' }, '--inspect'],
    [{ 'max-overhead': '1' }, '--max-overhead'],
    [{ rate: '50' }, '--rate'],
  ])('is refused beside %o', (values, flag) => {
    expect(() => parseProfileOptions({ native: 'any', ...values }, ['7'])).toThrow(flag);
  });
});
