import { existsSync, mkdirSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { median } from '../../src/core/statistics.ts';
import { percent, table } from '../bench/measurements.ts';
import { cacheFolder } from '../environments.ts';
import { type BugCase, SIDES, type Side } from './cases.ts';
import exceptions from './exceptions.json' with { type: 'json' };
import { falseFindings, said } from './score.ts';
import type { Watched } from './watch-case.ts';

/* What came of the cases: kept one by one, so that a bench that was broken off goes on where it was, and as a table. */

/** What was kept of an earlier run on the same commit and for the same time, or null. */
export class Results {
  readonly #folder: string;

  constructor(commit: string, watchS: number) {
    this.#folder = join(cacheFolder(), 'bugbench', `${commit}-${watchS}s`);
    mkdirSync(this.#folder, { recursive: true });
  }

  read(of: BugCase, side: Side): Watched | null {
    const path = this.#path(of, side);
    return existsSync(path) ? (JSON.parse(readFileSync(path, 'utf8')) as Watched) : null;
  }

  write(of: BugCase, watched: Watched): void {
    writeFileSync(this.#path(of, watched.side), `${JSON.stringify(watched, null, 1)}\n`);
  }

  #path(of: BugCase, side: Side): string {
    return join(this.#folder, `${of.id}-${side}.json`);
  }
}

/** A case with both its releases watched. */
export interface Row {
  readonly of: BugCase;
  readonly watched: Readonly<Record<Side, Watched>>;
}

const yes = (is: boolean): string => (is ? 'yes' : '**no**');

function show({ of, watched: { buggy, fixed } }: Row): string[] {
  const wrong = falseFindings(fixed, fixed.findings, exceptions);
  const excused = said(fixed.findings).length - wrong.length;
  const shown = (side: Watched, wanted: boolean): string =>
    side.showed === null || side.showed === wanted ? '' : ' (driver disagrees)';
  const cpu = SIDES.map((side) => (side === 'buggy' ? buggy : fixed).ownCpu ?? Number.NaN);
  return [
    `[${of.id}](${of.issue})`,
    of.package,
    `${of.versions.buggy}${shown(buggy, true)}`,
    `${of.versions.fixed}${shown(fixed, false)}`,
    yes(buggy.verdict.found),
    `${yes(buggy.verdict.kind)} (${of.kinds.join(', ')})`,
    yes(buggy.verdict.place),
    buggy.timeToFinding === null ? '' : `${buggy.timeToFinding.toFixed(0)} s`,
    `${wrong.length === 0 ? '0' : `**${wrong.map(({ code, kind }) => `${code} ${kind}`).join(', ')}**`}${excused > 0 ? ` (${excused} excused)` : ''}`,
    percent(Math.max(...cpu.filter((value) => !Number.isNaN(value))), 1),
  ];
}

/** A line a case, in Markdown. */
export function resultTable(rows: readonly Row[]): string {
  const head = ['bug', 'package', 'buggy', 'fixed', 'found', 'kind', 'place', 'stands after'];
  return table([...head, 'false on fixed', 'own CPU'], rows.map(show));
}

/** The sums. */
export function summaryOf(rows: readonly Row[]): string {
  const count = (is: (row: Row) => boolean): number => rows.filter(is).length;
  const times = rows.flatMap(({ watched }) => watched.buggy.timeToFinding ?? []);
  const wrong = rows.flatMap(({ watched: { fixed } }) =>
    falseFindings(fixed, fixed.findings, exceptions),
  ).length;
  const parts = [
    `${rows.length} cases: ${count(({ watched }) => watched.buggy.verdict.found)} found`,
    `${count(({ watched }) => watched.buggy.verdict.kind)} with the right kind`,
    `${count(({ watched }) => watched.buggy.verdict.place)} with kind and place`,
    `${wrong} false findings on the fixed releases`,
  ];
  const middle = times.length === 0 ? '' : `; median time to finding ${median(times).toFixed(0)} s`;
  return `${parts.join(', ')}${middle}.`;
}
