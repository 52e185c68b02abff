import { describe, expect, it } from 'vitest';
import { LOADS, PROGRAMS, watchProgram } from '../healthy/programs.ts';

/*
 * A healthy program of each runtime, half a minute each: what is planted is found, and nothing else is said above a note.
 * `npm run soak -- programs` watches all of them for ten minutes each, `npm run soak -- crowd` on a crowded machine.
 */

const WATCH_S = 30;
const PLANT_EVERY = 7;
/** Environments are made on first use. */
const LIMIT_MS = 400_000;

const SHOWN: readonly string[] = ['fastapi_sessions', 'express_sessions'];
const forms = PROGRAMS.filter(({ name }) => SHOWN.includes(name)).flatMap((program) =>
  LOADS.map((load) => ({ program, load })),
);

describe.concurrent('a healthy program', () => {
  it.for(forms)(
    '$program.name, $load, is left alone but for what is planted',
    { timeout: LIMIT_MS },
    async ({ program, load }) => {
      const times = { watchS: WATCH_S, plantEvery: PLANT_EVERY };
      const { planted, wrong } = await watchProgram(program, load, times);
      expect(wrong).toEqual([]);
      expect(planted).not.toBe(false);
    },
  );
});
