import { cpus } from 'node:os';
import { startHog } from '../targets/harness.ts';
import { percent, publish, rowsOf, setting, table } from '../bench/measurements.ts';
import { LOADS, PROGRAMS, watchProgram, type Watched } from './programs.ts';

/*
 * Every healthy program, idle and loaded, `TRACEWRIGHT_SOAK_S` seconds each (default ten minutes), with one planted block of 60 ms a minute.
 * False findings are all above `note` but the planted one. `TRACEWRIGHT_SOAK_BESIDE` of them are watched at a time; each is kept when it
 * is done, and one that broke off is begun anew.
 */

const MINUTES_TEN_S = 600;
const SOAK_S = setting('TRACEWRIGHT_SOAK_S', MINUTES_TEN_S);
const PLANT_EVERY = Math.min(60, SOAK_S / 4);
const HOUR_S = 3600;
const FORMS = PROGRAMS.flatMap((program) => LOADS.map((load) => ({ program, load })));

/** How many of each kind and mechanism. */
function counted({ wrongFindings }: Watched): string {
  const counts = new Map<string, number>();
  for (const { code, kind, mechanism } of wrongFindings) {
    const what = `${code} ${kind}${mechanism === null ? '' : ` (${mechanism})`}`;
    counts.set(what, (counts.get(what) ?? 0) + 1);
  }
  const texts = [...counts].map(([what, n]) => `${n} × ${what}`);
  return texts.length === 0 ? '0' : texts.join(', ');
}

export interface Crowd {
  /** Of the rows that are kept, and of the section that they are published in. */
  readonly name: string;
  readonly title: string;
  /** Watched at a time, where the environment says nothing else. */
  readonly beside: number;
  /** Processes that burn CPU meanwhile. */
  readonly burners: number;
}

/** Watches all of them and publishes what was said. */
export async function soakPrograms({ name: kept, title, beside, burners }: Crowd): Promise<void> {
  const BESIDE = setting('TRACEWRIGHT_SOAK_BESIDE', beside);
  const rows: Watched[] = [];
  const failures: unknown[] = [];
  const left = FORMS.entries();
  const worker = async (): Promise<void> => {
    // One iterator for all workers: each takes what the others have not.
    for (const [index, { program, load }] of left) {
      try {
        const name = `${kept}-${SOAK_S}-${program.name}-${load}`;
        const times = { watchS: SOAK_S, plantEvery: PLANT_EVERY };
        const [row] = await rowsOf(name, 1, () => watchProgram(program, load, times));
        if (row === undefined) throw new Error('no row');
        rows[index] = row;
        for (const said of row.wrong) console.log(`${row.name}, ${load}: ${said}`);
      } catch (error) {
        failures.push(error);
        console.log(`${program.name}, ${load}: ${String(error)}`);
      }
    }
  };
  const hogs = await Promise.all(
    Array.from({ length: burners }, () => startHog(2 * HOUR_S * FORMS.length)),
  );
  try {
    await Promise.all(Array.from({ length: BESIDE }, worker));
  } finally {
    await Promise.all(hogs.map((hog) => hog.stop()));
  }
  if (failures.length > 0) throw new AggregateError(failures, `${failures.length} forms failed`);
  const hours = rows.reduce((sum, { watchS }) => sum + watchS, 0) / HOUR_S;
  const wrong = rows.reduce((sum, row) => sum + row.wrong.length, 0);
  const planted = rows.filter((row) => row.planted !== null);
  const pressures = rows.flatMap(({ cpuPressure }) => cpuPressure ?? []);
  const crowd =
    pressures.length === 0 || burners === 0
      ? ''
      : ` ${BESIDE} programs at a time, beside ${burners} processes that burn CPU on ${cpus().length} cores; something that could run waited for a core in ${percent(Math.min(...pressures), 0)} to ${percent(Math.max(...pressures), 0)} of the time of a run.`;
  publish(
    title,
    `${rows.length} runs of ${PROGRAMS.length} pinned programs (test/healthy), ${hours.toFixed(1)} hours in all, one planted block of 60 ms every ${PLANT_EVERY.toFixed(0)} s: ${(wrong / hours).toFixed(2)} false findings an hour (n = ${wrong}), the planted block found in ${planted.filter((row) => row.planted).length} of ${planted.length} runs.${crowd}

${table(
  ['program', 'load', 'watched', 'waited for a core', 'planted found', 'other findings above note'],
  rows.map((row) => [
    row.name,
    row.load,
    `${row.watchS.toFixed(0)} s`,
    row.cpuPressure === null ? 'unknown' : percent(row.cpuPressure, 0),
    row.planted === null ? 'none planted' : row.planted ? 'yes' : '**no**',
    counted(row),
  ]),
)}`,
    'data/healthy.md',
  );
}
