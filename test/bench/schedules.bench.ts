import { execFileSync } from 'node:child_process';
import { join } from 'node:path';
import { it } from 'vitest';
import { publish, rowsOf, setting, table } from './measurements.ts';
import { installSchedulePeers } from './races/install.ts';
import {
  exploreRace,
  findAndShrink,
  naturalFailures,
  peerOn,
  type PeerRow,
  plantedRaces,
  type Race,
  type RaceLanguage,
} from './races/race.ts';

/*
 * The planted races: how rare they are by themselves, by which schedule they are found, whether their fixed twins are silent, and what other
 * tools do with them. Two hours for all schedules of the twins; broken off, it goes on with the row it was at.
 */

const LOOPS = setting('TRACEWRIGHT_BENCH_LOOPS', 1000);
const PROCESSES = setting('TRACEWRIGHT_BENCH_PROCESSES', 100);
const SCHEDULES = 200;
/** Share of trials from which on a race shows by itself, and needs no schedule. */
const RARE = 0.01;
/** Of each twin. */
const TWINS = setting('TRACEWRIGHT_BENCH_TWINS', 4000);
/** Schedules of a twin that are one row: what is lost when the bench is broken off. */
const CHUNK = 50;
/** One of them, or both without it. */
const ONLY = process.env['TRACEWRIGHT_BENCH_LANGUAGE'];
const LANGUAGES = (['python', 'node'] as const).filter(
  (language) => ONLY === undefined || ONLY === language,
);
const HERE = import.meta.dirname;

/** What the figures depend on: not the rest of the repository. */
const state = ['repro/schedules', 'repro/shrink', 'test/repro/races', 'test/bench/races']
  .map((path) =>
    execFileSync('git', ['rev-parse', '--short', `HEAD:${path}`], { cwd: HERE, encoding: 'utf8' }),
  )
  .join('')
  .replaceAll('\n', '');

interface CountRow {
  readonly loops: number;
  readonly processes: number;
  readonly tried: number;
  readonly found: boolean;
}

async function countRow(race: Race): Promise<CountRow> {
  const { loops, processes } = await naturalFailures(race, { loops: LOOPS, processes: PROCESSES });
  const asked = { schedules: SCHEDULES, seed: 0, all: false, fixed: false };
  const found = await exploreRace(race, asked);
  if (found.outcome === 'invalid') throw new Error(`${race.name}: ${found.reason}`);
  return { loops, processes, tried: found.tried, found: found.failure !== null };
}

/** Schedules of the fixed twin and those that failed. */
async function twinRows(race: Race): Promise<{ tried: number; failing: number }> {
  const rows = await rowsOf(
    `twin-${race.language}-${race.name}`,
    Math.ceil(TWINS / CHUNK),
    async (index) => {
      const asked = { schedules: CHUNK, seed: index * CHUNK, all: true, fixed: true };
      const found = await exploreRace(race, asked);
      if (found.outcome === 'invalid') throw new Error(`${race.name}: ${found.reason}`);
      return { tried: found.tried, failing: found.failing };
    },
    state,
  );
  const sum = (of: (row: { tried: number; failing: number }) => number): number =>
    rows.reduce((total, row) => total + of(row), 0);
  return { tried: sum(({ tried }) => tried), failing: sum(({ failing }) => failing) };
}

it('planted races', async () => {
  const cells: string[][] = [];
  const sums = { rare: 0, found: 0, failing: 0, tried: 0 };
  for (const race of LANGUAGES.flatMap(plantedRaces)) {
    const name = `count-${LOOPS}-${PROCESSES}-${race.language}-${race.name}`;
    // oxlint-disable-next-line no-await-in-loop -- one after another: they share the machine
    const [row] = await rowsOf(name, 1, () => countRow(race), state);
    // oxlint-disable-next-line no-await-in-loop
    const twin = await twinRows(race);
    if (row === undefined) throw new Error('no row');
    cells.push([
      `${race.language}/${race.name}`,
      `${row.loops} / ${LOOPS}`,
      `${row.processes} / ${PROCESSES}`,
      row.found ? String(row.tried) : `not in ${row.tried}`,
      `${twin.failing} / ${twin.tried}`,
    ]);
    if (row.loops / LOOPS < RARE) {
      sums.rare++;
      if (row.found) sums.found++;
    }
    sums.failing += twin.failing;
    sums.tried += twin.tried;
    // After each: broken off, the page has those that were done.
    publish('Planted races', plantedPage(cells, sums));
  }
});

function plantedPage(
  cells: readonly (readonly string[])[],
  {
    rare,
    found,
    failing,
    tried,
  }: {
    readonly rare: number;
    readonly found: number;
    readonly failing: number;
    readonly tried: number;
  },
): string {
  const head = ['Race', 'Fails in fresh loops', 'in fresh processes', 'Found by', 'Fixed twin'];
  const all = LANGUAGES.flatMap(plantedRaces).length;
  return `${cells.length} of the ${all} races of test/repro/races were measured: how often each fails by itself in ${LOOPS} fresh loops of one process (in Node a worker each) and in ${PROCESSES} fresh
processes, the how manieth schedule of \`trace repro explore\` (random, from seed 0, ${SCHEDULES} at most) found it, and of how many schedules its fixed twin failed (${TWINS} of each). ${rare} fail by themselves
in under ${RARE * 100} % of the loops; ${found} of these were found. Of ${tried} schedules of fixed twins ${failing} failed. The machine was busy with other work.

${table(head, cells)}`;
}

it('peers on planted races', async () => {
  const { python, fastCheck } = await installSchedulePeers();
  const peer = (tool: string) => (race: Race) =>
    peerOn([python, join(HERE, 'races', 'peer.py'), tool, race.path, String(SCHEDULES)], {});
  const trace = (race: Race): Promise<PeerRow> => findAndShrink(race, SCHEDULES);
  const tools: Readonly<Record<RaceLanguage, Readonly<Record<string, typeof trace>>>> = {
    python: {
      trace,
      simloom: peer('simloom'),
      Hypothesis: peer('hypothesis'),
      frontrun: peer('frontrun'),
    },
    node: {
      trace,
      'fast-check': (race) =>
        peerOn([process.execPath, join(HERE, 'races', 'peer.mjs'), race.path, String(SCHEDULES)], {
          FAST_CHECK: fastCheck,
        }),
    },
  };
  const parts: string[] = [];
  for (const language of LANGUAGES) {
    const names = Object.keys(tools[language]);
    const cells: string[][] = [];
    const found = new Map<string, number>();
    for (const race of plantedRaces(language)) {
      const line = [race.name];
      for (const [name, look] of Object.entries(tools[language])) {
        // oxlint-disable-next-line no-await-in-loop -- one after another: they share the machine
        const [row] = await rowsOf(`peer-${name}-${race.name}`, 1, () => look(race), state);
        if (row?.found === true) found.set(name, (found.get(name) ?? 0) + 1);
        line.push(cellOf(row));
      }
      cells.push(line);
    }
    const totals = names.map((name) => `${found.get(name) ?? 0} / ${cells.length}`);
    parts.push(table(['Race', ...names], [...cells, ['found', ...totals]]));
  }
  publish(
    'Schedules beside other tools',
    `${PEERS_NOTE}\n\n${parts.join('\n\n')}`,
    'benchmarks.md',
  );
});

const PEERS_NOTE = `Each tool on each race of test/repro/races, ${SCHEDULES} schedules at most: found by which schedule, in how many seconds (the first schedule's start until the failure, on a machine with
other work, which stood still for up to two minutes at times: not to be compared), and the steps of its smallest case in its own unit: waits (trace), callbacks out of order (simloom 0.5.0), sleeps that take longer
(Hypothesis 6.170.15, which is given every \`asyncio.sleep\` to lengthen by 0 to 8 turns), tasks released in all (fast-check 4.10.2's scheduler, which is given every turn that the
program awaits), scheduling steps (frontrun 0.7.0, by its default strategy, DPOR; what a program gathers are
its workers, and one that gathers nothing has none to give it). fast-check schedules promises and no timers: \`timer-order\` is not for it.`;

function cellOf(row: PeerRow | undefined): string {
  if (row === undefined) return '?';
  if (row.problem !== undefined) return `could not be tried: ${row.problem.replaceAll('|', '/')}`;
  if (!row.found) return `not in ${row.tried}`;
  return `${row.tried}, ${row.seconds.toFixed(1)} s, ${row.steps ?? '?'}`;
}
