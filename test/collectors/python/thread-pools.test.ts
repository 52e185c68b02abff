import { join } from 'node:path';
import { describe, expect, it } from 'vitest';
import { LOCK_LOOK } from '../../../collectors/python/locks/lock-watch.ts';
import { deadlock } from '../../../src/analysis/deadlock.ts';
import { lockContention } from '../../../src/analysis/lock-contention.ts';
import { SNAPSHOT } from '../../../src/core/semconv.ts';
import { interpreters } from '../../environments.ts';
import { findingsOfLook } from './watch-look.ts';

const PROGRAM = join(import.meta.dirname, '../../targets/python/thread_connections.py');
/** Two seconds each, as told: until threads have stood for five, and some. */
const TURNS = 16;
/** Of a program that has nothing to show. */
const HEALTHY_TURNS = 6;

const watch = (
  python: string,
  mode: readonly string[],
  { turns = TURNS, waiting }: { readonly turns?: number; readonly waiting?: number } = {},
): ReturnType<typeof findingsOfLook> =>
  findingsOfLook(
    {
      python,
      program: [PROGRAM, ...mode],
      look: LOCK_LOOK,
      kind: SNAPSHOT.threadPool,
      every: { real: 0.2, told: 2 },
      detectors: [deadlock, lockContention],
      isEnough: ([first]) => waiting === undefined || first?.measure['waiting_count'] === waiting,
    },
    turns,
  );

describe.each(interpreters())('threads that want connections, Python $version', ({ path }) => {
  it.concurrent('are told when no thread has one any more', async () => {
    const findings = await watch(path, ['lost', 'timed'], { waiting: 8 });
    expect(findings).toMatchObject([
      {
        code: 'TRC105',
        mechanism: 'pool exhaustion',
        confidence: 'likely',
        measure: { waiting_count: 8 },
      },
    ]);
    expect(findings[0]?.summary).toContain('connection of ConnectionPool and no thread has one');
    expect(findings[0]?.where[0]?.function).toMatch(/checkout$/);
    expect(findings[0]?.where.map((place) => place.function)).toContain('load');
  });

  it.concurrent('are told when others keep them, with who does and where', async () => {
    const findings = await watch(path, ['kept'], { waiting: 6 });
    expect(findings).toMatchObject([
      {
        code: 'TRC106',
        kind: 'lock-contention',
        mechanism: 'pool exhaustion',
        measure: { waiting_count: 6, holders_count: 2 },
        where: [{}, {}, {}, {}],
      },
    ]);
    expect(findings[0]?.where.map((place) => place.function.split('.').at(-1))).toEqual([
      'report',
      'checkout',
      'load',
      'work',
    ]);
    expect(findings[0]?.evidence[1]?.summary).toMatch(
      /^worker-\d has connection: Connection in report \(.*thread_connections\.py:\d+\) and has not moved for [\d.]+ s \(lock\)$/,
    );
  });

  it.concurrent.each([['busy'], ['workers']])(
    'are not when it is as it should be: %s',
    async (mode) => {
      expect(await watch(path, [mode], { turns: HEALTHY_TURNS })).toEqual([]);
    },
  );
});
