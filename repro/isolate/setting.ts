import type { Arm } from '../run/rounds.ts';

/** A reproduction with one thing changed. */
export interface Setting extends Arm {
  /** The thing that is changed: `concurrency`, `serialize app:deposit`, `flag CACHE`. */
  readonly factor: string;
  /** What it is changed to: `1`, `one at a time`, `off`. */
  readonly value: string;
}

/** The reproduction as it is: what every setting is compared with. */
export const AS_GIVEN = 'as given';
