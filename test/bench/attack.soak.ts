import { expect, it } from 'vitest';
import { Arena, type Breach } from '../attack/arena.ts';
import { ENTRANCES } from '../attack/entrances.ts';
import { publish, setting, table } from './measurements.ts';

/*
 * `npm run soak -- attack`: damaged input through every way in, in turn, for ten minutes
 * (`TRACEWRIGHT_SOAK_S`). A seed of its own each time, unless `TRACEWRIGHT_SEED` says which: a case
 * is made again by its seed.
 */

const SOAK_S = setting('TRACEWRIGHT_SOAK_S', 600);
const SEED = setting('TRACEWRIGHT_SEED', Math.floor(Date.now() / 1000));

it('damaged input', { timeout: 2 * SOAK_S * 1e3 + 60_000 }, async () => {
  const arenas = ENTRANCES.map((entrance) => ({ name: entrance.name, arena: new Arena(entrance) }));
  const breaches: Breach[] = [];
  let rounds = 0;
  try {
    for (const { arena } of arenas) await arena.prepare();
    const until = performance.now() + SOAK_S * 1e3;
    while (performance.now() < until) {
      for (const { arena } of arenas) {
        const breach = await arena.attempt(SEED + rounds);
        if (breach !== null) {
          breaches.push(breach);
          console.log(JSON.stringify(breach));
        }
      }
      rounds += 1;
    }
  } finally {
    for (const { arena } of arenas) await arena.close();
  }
  const said = (name: string): string =>
    breaches
      .filter(({ entrance }) => entrance === name)
      .map(({ seed, args: [verb = ''], what }) => `seed ${seed}, ${verb}: ${inCell(what)}`)
      .join('<br>') || '0';
  publish(
    'Damaged input',
    `Seeds from ${SEED} on, ${Math.round(SOAK_S / 60)} minutes.\n\n${table(
      ['input', 'cases', 'crashed, hung, over 300 MiB or changed a file outside'],
      arenas.map(({ name }) => [name, String(rounds), said(name)]),
    )}`,
    'data/attack.md',
  );
  expect(breaches).toEqual([]);
});

/** One line, whatever a stack has in it. */
const inCell = (text: string): string => text.replaceAll(/[|\s]+/g, ' ');
