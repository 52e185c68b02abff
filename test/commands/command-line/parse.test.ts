import { describe, expect, it } from 'vitest';
import {
  parseChoice,
  parseDuration,
  parseHttpUrl,
  parseSize,
} from '../../../src/commands/command-line/parse.ts';
import { writeDuration } from '../../../src/core/duration.ts';

const rule = { flag: '-d', bare: 's', least: 0.0001, most: 10 * 86_400 } as const;

describe('parseDuration', () => {
  it.each([
    ['10', 10],
    ['10s', 10],
    ['2m', 120],
    ['2min', 120],
    ['1.5h', 5400],
    ['1d', 86_400],
    ['500ms', 0.5],
    ['500us', 0.0005],
    ['10d', 864_000],
    ['.5s', 0.5],
    [' 3 s ', 3],
  ])('reads %s', (text, seconds) => {
    expect(parseDuration(text, rule)).toBeCloseTo(seconds, 9);
  });

  it('gives a bare number the unit of its flag', () => {
    expect(parseDuration('50', { ...rule, bare: 'ms' })).toBeCloseTo(0.05, 9);
  });

  it.each(['', 'ten', '-5', '5x', '1e3', '10 20', 's', '5S', 'Infinity', '0x10', '5.'])(
    'refuses %j and shows it',
    (text) => {
      expect(() => parseDuration(text, rule)).toThrow(
        `-d takes a duration such as 10s, 500ms, 2m or 1h, got '${text}'`,
      );
    },
  );

  it('accepts both bounds and names them when they are passed', () => {
    const bounded = { flag: '--lag', bare: 'ms', least: 0.005, most: 10 } as const;
    expect(parseDuration('5', bounded)).toBeCloseTo(0.005, 12);
    expect(parseDuration('10s', bounded)).toBe(10);
    expect(() => parseDuration('4.9ms', bounded)).toThrow(
      "--lag takes between 5ms and 10s, got '4.9ms'",
    );
    expect(() => parseDuration('11s', bounded)).toThrow('between 5ms and 10s');
  });
});

describe('writeDuration', () => {
  it('writes what a flag reads', () => {
    expect([0.005, 0.05, 1, 90, 3600, 720 * 3600].map(writeDuration)).toEqual([
      '5ms',
      '50ms',
      '1s',
      '90s',
      '1h',
      '720h',
    ]);
  });
});

describe('parseHttpUrl', () => {
  it('keeps the text as given', () => {
    expect(parseHttpUrl('http://127.0.0.1:4318', '--otlp-endpoint')).toBe('http://127.0.0.1:4318');
  });

  it.each(['jaeger:4318', 'ftp://x', '', '127.0.0.1:4318'])('refuses %j', (text) => {
    expect(() => parseHttpUrl(text, '--otlp-endpoint')).toThrow('--otlp-endpoint takes a URL');
  });
});

describe('parseChoice', () => {
  it('names the choices', () => {
    expect(parseChoice('json', ['text', 'json'], '-f')).toBe('json');
    expect(() => parseChoice('yaml', ['text', 'json'], '-f')).toThrow(
      "-f takes text or json, got 'yaml'",
    );
  });
});

describe('parseSize', () => {
  const sizes = { flag: '--max-size', least: 2 ** 20, most: 2 ** 40 } as const;

  it('takes binary and decimal units, as --trigger does', () => {
    expect(parseSize('512MiB', sizes)).toBe(512 * 2 ** 20);
    expect(parseSize('1.5 GB', sizes)).toBe(1.5e9);
  });

  it.each(['', '512', '-1GiB', '1gib', 'GiB', '1GiB2'])('refuses %j and shows it', (text) => {
    expect(() => parseSize(text, sizes)).toThrow(
      `--max-size takes a size such as 512MiB or 2GiB, got '${text}'`,
    );
  });

  it('names its bounds when they are passed', () => {
    expect(() => parseSize('1kB', sizes)).toThrow('a size from 1MiB to 1024GiB');
  });
});
