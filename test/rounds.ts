import { FULL } from './programs.ts';

/** How many random cases a test tries: `all` in .ci/run, a tenth in `npm test`. */
export const rounds = (all: number): number => (FULL ? all : Math.ceil(all / 10));
