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
/** Cases that did harm once, by their entrance. */
const KNOWN: Readonly<Record<string, readonly number[]>> = {
  'session files': [1035],
  settings: [1081, 1120],
  'inspector replies': [1104],
};
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
    const seeds = Array.from({ length: CASES }, (_, i) => SEED + i);
    for (const seed of [...seeds, ...(KNOWN[entrance.name] ?? [])])
      breaches.push(await arena.attempt(seed));
    expect(breaches.filter((one) => one !== null)).toEqual([]);
  });
});
