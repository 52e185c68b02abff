import { it } from 'vitest';
import { publish, rowsOf, setting, table } from '../bench/measurements.ts';
import { LOADS, PROGRAMS, watchProgram } from './programs.ts';

/*
 * `npm run soak -- programs`: every healthy program, idle and loaded, `TRACEWRIGHT_SOAK_S` seconds each (default ten minutes), with one planted
 * block of 60 ms a minute. False findings are all above `note` but the planted one.
 */

const MINUTES_TEN_S = 600;
const SOAK_S = setting('TRACEWRIGHT_SOAK_S', MINUTES_TEN_S);
const PLANT_EVERY = Math.min(60, SOAK_S / 4);
const HOUR_S = 3600;
const FORMS = PROGRAMS.flatMap((program) => LOADS.map((load) => ({ program, load })));

it('healthy programs', { timeout: 12 * HOUR_S * 1e3 }, async () => {
  const rows = await rowsOf(`programs-${SOAK_S}`, FORMS.length, async (index) => {
    const { program, load } = FORMS[index] ?? {};
    if (program === undefined || load === undefined) throw new Error('no such form');
    const watched = await watchProgram(program, load, { watchS: SOAK_S, plantEvery: PLANT_EVERY });
    for (const said of watched.wrong) console.log(`${watched.name}, ${load}: ${said}`);
    return watched;
  });
  const hours = rows.reduce((sum, { watchS }) => sum + watchS, 0) / HOUR_S;
  const wrong = rows.reduce((sum, row) => sum + row.wrong.length, 0);
  const planted = rows.filter((row) => row.planted !== null);
  publish(
    'Healthy programs',
    `${rows.length} runs of ${PROGRAMS.length} pinned programs (test/healthy), ${hours.toFixed(1)} hours in all, one planted block of 60 ms every ${PLANT_EVERY.toFixed(0)} s: ${(wrong / hours).toFixed(2)} false findings an hour (n = ${wrong}), the planted block found in ${planted.filter((row) => row.planted).length} of ${planted.length} runs.

${table(
  ['program', 'load', 'watched', 'planted found', 'other findings above note'],
  rows.map((row) => [
    row.name,
    row.load,
    `${row.watchS.toFixed(0)} s`,
    row.planted === null ? 'none planted' : row.planted ? 'yes' : '**no**',
    row.wrong.length === 0 ? '0' : row.wrong.join('; '),
  ]),
)}`,
  );
});
