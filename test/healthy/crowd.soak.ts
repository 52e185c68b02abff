import { cpus } from 'node:os';
import { it } from 'vitest';
import { LOADS, PROGRAMS } from './programs.ts';
import { soakPrograms } from './soak.ts';

/*
 * `npm run soak -- crowd`: twenty minutes, half of the programs' forms at a time beside four processes for each core that burn CPU: what is
 * said of healthy programs that a crowded machine keeps waiting.
 */

const BURNERS_A_CORE = 4;

it('healthy programs on a crowded machine', { timeout: 43_200_000 }, () =>
  soakPrograms({
    name: 'crowd',
    title: 'Healthy programs on a crowded machine',
    beside: (PROGRAMS.length * LOADS.length) / 2,
    burners: BURNERS_A_CORE * cpus().length,
  }),
);
