import { join } from 'node:path';
import { describe, expect, it } from 'vitest';
import { sourceFiles } from './architecture.ts';

const sources = sourceFiles(join(import.meta.dirname, '..'), ['src', 'collectors', 'repro']);

/** Digits for a program to read, or of a number that has no unit, by file and why. */
const EXCEPTIONS: Readonly<Record<string, string>> = {
  'src/core/units.ts': 'people read it',
  'src/core/duration.ts': 'a duration as a flag reads it',
  'src/recording/composite.ts': 'weights in an attribute of the recording',
  'collectors/sampler/batch-observations.ts': 'weights in an attribute of the recording',
  'src/load/results/threshold-parse.ts': 'a quantile without what floating point adds',
  'src/load/results/objectives.ts': 'as --slo takes it',
  'src/report/progress.ts': 'a clock that counts seconds',
  'src/report/load-progress.ts': 'a clock that counts seconds',
  'src/report/load-junit.ts': 'an attribute of JUnit XML, in seconds',
  'src/report/hypotheses.ts': 'weights of evidence, aligned below each other',
  'src/commands/repro/new/traffic.ts': 'a JSON field, in seconds',
  'src/commands/repro/new/proxy-traffic.ts': 'a JSON field, in seconds',
};

/** Digits of one's own, and a unit behind what no function of the module above made. */
const PRIVATE = /\.to(?:Fixed|Precision)\(|\$\{(?!format)[^{}]*\} (?:s|ms|[KMG]iB)(?![a-z])/;

/** Where a number is made into digits: seconds, bytes or shares in a private form of people's units. */
function privateFormats({ path, text }: { path: string; text: string }): string[] {
  if (Object.hasOwn(EXCEPTIONS, path)) return [];
  return text
    .split('\n')
    .map((line, index) => ({ line, at: `${path}:${index + 1}` }))
    .filter(({ line }) => PRIVATE.test(line))
    .map(({ at, line }) => `${at} ${line.trim()}`);
}

describe("people's units", () => {
  it('are made in src/core/units.ts and nowhere else', () => {
    expect(sources.flatMap(privateFormats)).toEqual([]);
  });

  it('have no exception that is not needed', () => {
    const needed = sources.filter(({ text }) => PRIVATE.test(text)).map(({ path }) => path);
    expect(Object.keys(EXCEPTIONS).filter((path) => !needed.includes(path))).toEqual([]);
  });

  it.each([
    'const text = `${lived.toFixed(1)} s after its start`;',
    'const ms = (seconds) => `${Number((seconds * 1e3).toPrecision(3))} ms`;',
    'const ms = (seconds) => `${Math.round(seconds * 1e3)} ms`;',
    'const text = `${Math.round(taken / 2 ** 20)} MiB`;',
    'const text = `no answer in ${timeout} s`;',
  ])('are noticed elsewhere: %s', (text) => {
    expect(privateFormats({ path: 'src/analysis/planted.ts', text })).toHaveLength(1);
  });
});
