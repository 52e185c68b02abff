import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { Arena, type Breach } from './arena.ts';
import { ENTRANCES } from './entrances.ts';

/*
 * Damaged input through every way in: trace ends by itself within ten seconds and 300 MiB, with no
 * bug of its own, and changes nothing outside. `npm run soak -- attack` does the same for ten
 * minutes.
 */

const CASES = 10;
/** Each begins its cases here: the same in every run. */
const SEED = 1;
const LIMIT_MS = 300_000;

describe.concurrent.for(ENTRANCES)('damaged $name', (entrance) => {
  let arena: Arena;
  beforeAll(async () => {
    arena = new Arena(entrance);
    await arena.prepare();
  });
  afterAll(() => arena.close());

  it('do no harm', { timeout: LIMIT_MS }, async () => {
    const breaches: (Breach | null)[] = [];
    for (let i = 0; i < CASES; i += 1) breaches.push(await arena.attempt(SEED + i));
    expect(breaches.filter((one) => one !== null)).toEqual([]);
  });
});
