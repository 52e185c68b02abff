import { describe, expect, it } from 'vitest';
import { LOADS, PROGRAMS, watchProgram } from '../healthy/programs.ts';

/*
 * Two forms of the healthy programs a day, another two each day, half a minute each: what is planted is found, and nothing else is said above
 * a note. `npm run soak -- programs` watches all of them for ten minutes each.
 */

const WATCH_S = 30;
const PLANT_EVERY = 7;
const FORMS_A_DAY = 2;
const DAY_MS = 86_400_000;
/** Environments are made on first use. */
const LIMIT_MS = 400_000;

const day = Math.floor(Date.now() / DAY_MS);
const forms = PROGRAMS.filter(({ soakOnly }) => soakOnly === undefined).flatMap((program) =>
  LOADS.map((load) => ({ program, load })),
);
const today = Array.from(
  { length: FORMS_A_DAY },
  (_, i) => forms[(day * FORMS_A_DAY + i) % forms.length] ?? expect.fail('no form'),
);

describe.concurrent('a healthy program', () => {
  it.for(today)(
    '$program.name, $load, is left alone but for what is planted',
    { timeout: LIMIT_MS },
    async ({ program, load }) => {
      const look = () => watchProgram(program, load, { watchS: WATCH_S, plantEvery: PLANT_EVERY });
      const isRight = ({ planted, wrong }: Awaited<ReturnType<typeof look>>): boolean =>
        planted !== false && wrong.length === 0;
      const first = await look();
      // Once more on a machine that was busy: a block of healthy code is one that comes back.
      const { planted, wrong } = isRight(first) ? first : await look();
      expect(wrong).toEqual([]);
      expect(planted).not.toBe(false);
    },
  );
});
