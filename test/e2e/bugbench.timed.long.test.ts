import { join } from 'node:path';
import { setTimeout as wait } from 'node:timers/promises';
import { describe, expect, it } from 'vitest';
import { type BugCase, readCases, type Side } from '../bugbench/cases.ts';
import exceptions from '../bugbench/exceptions.json' with { type: 'json' };
import { falseOnBusyMachine } from '../bugbench/score.ts';
import { watchCase, type Watched } from '../bugbench/watch-case.ts';

/*
 * A published bug of each class: the release that has it is named by kind and place, of the one that mended it the same is not said.
 * `npm run bugbench` measures all of them.
 */

const SHOWN: readonly string[] = [
  'huggingface-hub-blocking-sleep',
  'path-to-regexp-redos',
  'fastapi-dependency-pool-deadlock',
  'image-size-descriptor-leak',
  'axios-cancel-token-leak',
];
/**
 * What blocks or waits is seen at once; growth takes half a minute of readings before it is tested,
 * and more where the program gets on slowly.
 */
const WATCH_S: Readonly<Record<string, number>> = {
  blocking: 12,
  deadlock: 25,
  race: 25,
  leak: 80,
};
const DEFAULT_WATCH_S = 40;
/** Environments are made on first use. */
const LIMIT_MS = 400_000;
/** Watched at a time: most of it is waiting, and the machine has two cores. */
const AT_ONCE = 4;

const cases = readCases(join(import.meta.dirname, '..', 'cases')).filter(({ id }) =>
  SHOWN.includes(id),
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

const look = (of: BugCase, side: Side): Promise<Watched> =>
  inTurn(() =>
    watchCase(of, side, { watchS: WATCH_S[of.class] ?? DEFAULT_WATCH_S, toTheEnd: false }),
  );

describe.concurrent('published bugs', () => {
  it('are there', () => {
    expect(cases.map(({ id }) => id).toSorted()).toEqual([...SHOWN].toSorted());
  });

  it.for(cases)('$id is named by kind and place', { timeout: LIMIT_MS }, async (of) => {
    const { verdict, findings } = await look(of, 'buggy');
    expect(verdict, JSON.stringify(findings)).toMatchObject({ kind: true, place: true });
  });

  it.for(cases)('$id is not named where it is mended', { timeout: LIMIT_MS }, async (of) => {
    const { findings } = await look(of, 'fixed');
    expect(falseOnBusyMachine(of, findings, exceptions)).toEqual([]);
  });
});
