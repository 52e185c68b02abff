import { join } from 'node:path';
import { setTimeout as wait } from 'node:timers/promises';
import { describe, expect, it } from 'vitest';
import { type BugCase, readCases, type Side } from '../bugbench/cases.ts';
import exceptions from '../bugbench/exceptions.json' with { type: 'json' };
import { falseOnBusyMachine } from '../bugbench/score.ts';
import { watchCase, type Watched } from '../bugbench/watch-case.ts';

/*
 * A fifth of the published bugs, another one each day: the release that has the bug is named by kind and place, of the one that mended it
 * the same is not said. `npm run bugbench` measures all of them.
 */

const FIFTHS = 5;
const DAY_MS = 86_400_000;
/** What blocks or waits is seen at once; growth takes half a minute of readings before it is tested. */
const WATCH_S: Readonly<Record<string, number>> = {
  blocking: 12,
  deadlock: 25,
  race: 25,
  leak: 40,
};
const DEFAULT_WATCH_S = 40;
/** A second look is longer: the first may have fallen into a stretch in which the machine did other things. */
const AGAIN = 1.5;
/** Environments are made on first use. */
const LIMIT_MS = 400_000;
/** Watched at a time: most of it is waiting, and the machine has two cores. */
const AT_ONCE = 4;

const today = Math.floor(Date.now() / DAY_MS) % FIFTHS;
const cases = readCases(join(import.meta.dirname, '..', 'cases')).filter(
  (_, index) => index % FIFTHS === today,
);

let watching = 0;

async function inTurn<T>(work: () => Promise<T>): Promise<T> {
  while (watching >= AT_ONCE) await wait(100);
  watching += 1;
  try {
    return await work();
  } finally {
    watching -= 1;
  }
}

async function lookTwice(
  of: BugCase,
  side: Side,
  isRight: (watched: Watched) => boolean,
): Promise<Watched> {
  const watchS = WATCH_S[of.class] ?? DEFAULT_WATCH_S;
  const look = (s: number) => inTurn(() => watchCase(of, side, { watchS: s, toTheEnd: false }));
  const watched = await look(watchS);
  if (isRight(watched)) return watched;
  return look(watchS * AGAIN);
}

describe.concurrent('published bugs', () => {
  const found = cases.filter(({ missed }) => missed === null);

  it.for(found)('$id is named by kind and place', { timeout: LIMIT_MS }, async (of) => {
    const { verdict, findings } = await lookTwice(of, 'buggy', (watched) => watched.verdict.place);
    expect(verdict, JSON.stringify(findings)).toMatchObject({ kind: true, place: true });
  });

  it.for(cases)('$id is not named where it is mended', { timeout: LIMIT_MS }, async (of) => {
    const wrong = (watched: Watched) => falseOnBusyMachine(of, watched.findings, exceptions);
    const watched = await lookTwice(of, 'fixed', (one) => wrong(one).length === 0);
    expect(wrong(watched)).toEqual([]);
  });
});
