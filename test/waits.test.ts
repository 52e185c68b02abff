import { readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect, it } from 'vitest';

/*
 * A test that sleeps until something ought to have happened fails on a busy machine and wastes time on a quiet one: it has to ask until it
 * has. Where real time is what a test is about, or paces a question that is asked again, a comment above says so.
 */

const ROOT = join(import.meta.dirname, '..');
const SLEEP = /\bawait (?:(?:sleep|wait|setTimeout|delay)\((?!0\))|new Promise\(.*\bsetTimeout\()/;
const REASON = /^\s*\/\/ Real time: \S/;

/** Files in which programs under test sleep, in texts of their own. */
const PROGRAMS: readonly string[] = [
  'commands/session/gates.test.ts',
  'repro/isolate/node.long.test.ts',
  'session/store.test.ts',
];

/** The lines of a text that sleep without saying why, from 1. A loop that waits says what it waits for. */
function unexplained(text: string): readonly number[] {
  const lines = text.split('\n');
  return lines.flatMap((line, i) =>
    SLEEP.test(line) &&
    !/\b(?:while|for) \(/.test(`${lines[i - 1] ?? ''}${line}`) &&
    !REASON.test(lines[i - 1] ?? '')
      ? [i + 1]
      : [],
  );
}

it('a test waits for what it needs, and sleeps only with a reason', () => {
  const files = readdirSync(join(ROOT, 'test'), { recursive: true, encoding: 'utf8' }).filter(
    (file) => file.endsWith('.test.ts') && file !== 'waits.test.ts' && !PROGRAMS.includes(file),
  );
  expect(files.length).toBeGreaterThan(200);
  const found = files.flatMap((file) =>
    unexplained(readFileSync(join(ROOT, 'test', file), 'utf8')).map((line) => `${file}:${line}`),
  );
  expect(found).toEqual([]);
});

it.each([
  ['  await sleep(50);', [1]],
  ['  await wait(1_000);\n  // Real time: x\n', [1]],
  ['  // Real time: the pace of a server\n  await sleep(50);', []],
  ['  while (!done()) await sleep(5);', []],
  ['  await new Promise((resolve) => setTimeout(resolve, 400));', [1]],
  ['  await sleep(0);', []],
])('which %j does or does not', (text, lines) => {
  expect(unexplained(text)).toEqual(lines);
});
