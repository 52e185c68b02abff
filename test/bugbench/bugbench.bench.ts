import { mkdirSync, writeFileSync } from 'node:fs';
import { delimiter, dirname, join, resolve } from 'node:path';
import { it } from 'vitest';
import { commit, setting } from '../bench/measurements.ts';
import { type BugCase, readCases, SIDES, type Side } from './cases.ts';
import exceptions from './exceptions.json' with { type: 'json' };
import { environmentOf } from './environments.ts';
import { writePage } from './page.ts';
import { Results, resultTable, type Row, summaryOf } from './results.ts';
import { falseFindings } from './score.ts';
import { watchCase, type Watched } from './watch-case.ts';

/*
 * Published bugs, each as the release that has it and as the one that mended it, under `trace attach`: `npm run bugbench [-- FOLDER…]`.
 * With --prepare the environments are only installed. main.js turns the command line into the variables that are read here.
 */

const OWN = join(import.meta.dirname, '..', 'cases');
const WATCH_S = setting('TRACEWRIGHT_BUGBENCH_S', 45);
const JOBS = setting('TRACEWRIGHT_BUGBENCH_JOBS', 2);

const list = (name: string, separator: string): string[] =>
  (process.env[name] ?? '').split(separator).filter((one) => one !== '');

function allCases(): BugCase[] {
  const folders = [OWN, ...list('TRACEWRIGHT_BUGBENCH_CASES', delimiter)];
  const names = list('TRACEWRIGHT_BUGBENCH_NAMES', ',');
  const cases = folders.flatMap((folder) => readCases(resolve(folder), names));
  const missing = names.filter((name) => !cases.some(({ id }) => id === name));
  if (missing.length > 0) throw new Error(`no such case: ${missing.join(', ')}`);
  return cases;
}

function say(of: BugCase, watched: Watched): void {
  const { side, verdict, findings, showed } = watched;
  const right = side === 'buggy' ? `kind ${verdict.kind}, place ${verdict.place}` : '';
  const wrong = falseFindings(watched, findings, exceptions).length;
  console.log(
    `${of.id} ${of.versions[side]} (${side}): ${right}${wrong > 0 ? ` ${wrong} FALSE` : ''} driver says ${String(showed)}`,
  );
  for (const { code, kind, severity, confidence, where, summary } of findings) {
    const places = where.slice(0, 3).map((place) => `${place.function} (${place.file})`);
    console.log(
      `    ${code} ${kind} ${severity} ${confidence}: ${summary}\n        ${places.join('\n        ')}`,
    );
  }
}

it('published bugs', { timeout: 6 * 3_600_000 }, async () => {
  const cases = allCases();
  const results = new Results(commit(), WATCH_S);
  const again = process.env['TRACEWRIGHT_BUGBENCH_AGAIN'] === '1';
  const work = cases.flatMap((of) => SIDES.map((side) => ({ of, side })));
  const done = new Map<string, Watched>();
  const failures: string[] = [];
  const prepareOnly = process.env['TRACEWRIGHT_BUGBENCH_PREPARE'] === '1';
  const one = async ({ of, side }: { of: BugCase; side: Side }): Promise<void> => {
    try {
      if (prepareOnly) {
        await environmentOf(of.recipes[side]);
        console.log(`${of.id} ${of.versions[side]} (${side}): installed`);
        return;
      }
      const kept = again ? null : results.read(of, side);
      const watched = kept ?? (await watchCase(of, side, { watchS: WATCH_S, toTheEnd: true }));
      if (kept === null) results.write(of, watched);
      done.set(`${of.id} ${side}`, watched);
      say(of, watched);
    } catch (error) {
      failures.push(`${of.id}, ${side}: ${error instanceof Error ? error.message : String(error)}`);
      console.log(failures.at(-1));
    }
  };
  const worker = async (): Promise<void> => {
    for (let next; (next = work.shift()) !== undefined;) await one(next);
  };
  await Promise.all(Array.from({ length: JOBS }, worker));
  if (prepareOnly && failures.length === 0) return;
  const rows = cases.flatMap((of): Row[] => {
    const buggy = done.get(`${of.id} buggy`);
    const fixed = done.get(`${of.id} fixed`);
    return buggy === undefined || fixed === undefined ? [] : [{ of, watched: { buggy, fixed } }];
  });
  console.log(`\n${resultTable(rows)}\n\n${summaryOf(rows)}`);
  const json = process.env['TRACEWRIGHT_BUGBENCH_JSON'];
  if (json !== undefined) {
    mkdirSync(dirname(resolve(json)), { recursive: true });
    writeFileSync(
      json,
      `${JSON.stringify({ commit: commit(), watch_s: WATCH_S, rows }, null, 1)}\n`,
    );
  }
  if (process.env['TRACEWRIGHT_BUGBENCH_PUBLISH'] === '1') writePage(rows, WATCH_S);
  if (failures.length > 0) throw new Error(`could not be measured:\n${failures.join('\n')}`);
});
