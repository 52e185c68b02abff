import { join } from 'node:path';
import { describe, expect, it } from 'vitest';
import { POOL_LOOK } from '../../../collectors/python/pool-watch.ts';
import { SNAPSHOT } from '../../../src/core/semconv.ts';
import { interpreters } from '../../environments.ts';
import { findingsOfLook, type Watching } from './watch-look.ts';

const PROGRAM = join(import.meta.dirname, '../../targets/python/connections.py');
/** Until a program whose connections are lost must have shown it, 300 ms between two. */
const MOST_TURNS = 100;
/** Of one in which nothing moves: five seconds as told, and some. */
const STANDING_TURNS = 20;
/** Of a program that has nothing to show. */
const HEALTHY_TURNS = 12;

const watch = (
  python: string,
  mode: string,
  turns: number,
  isEnough?: Watching['isEnough'],
): ReturnType<typeof findingsOfLook> =>
  findingsOfLook(
    {
      python,
      program: [PROGRAM, mode],
      look: POOL_LOOK,
      kind: SNAPSHOT.pool,
      every: { real: 0.3, told: 1 },
      ...(isEnough === undefined ? {} : { isEnough }),
    },
    turns,
  );

describe.concurrent.each(interpreters())(
  'tasks that want connections, Python $version',
  ({ path }) => {
    it('are told when all connections are lost, with the pool and what it holds', async () => {
      const findings = await watch(path, 'lost', MOST_TURNS);
      expect(findings).toHaveLength(1);
      expect(findings[0]).toMatchObject({
        code: 'TRC105',
        kind: 'deadlock',
        mechanism: 'pool exhaustion',
        confidence: 'likely',
      });
      expect(findings[0]?.where[0]?.function).toMatch(/acquire$/);
      expect(findings[0]?.where.map((place) => place.function)).toContain('request');
      expect(findings[0]?.evidence[0]?.summary).toContain('used has 3');
    });

    it('are told when always the same want one that nobody has', async () => {
      const findings = await watch(path, 'kept', STANDING_TURNS);
      expect(findings).toHaveLength(1);
      expect(findings[0]).toMatchObject({ kind: 'deadlock', mechanism: 'pool exhaustion' });
      expect(findings[0]?.evidence[0]?.summary).toContain('the same as before');
      expect(findings[0]?.evidence[0]?.summary).toContain('used has 3');
    });

    it('are told when none is taken and they were not woken', async () => {
      const findings = await watch(
        path,
        'unwoken',
        STANDING_TURNS,
        ([first]) => first?.measure['waiting_count'] === 8,
      );
      expect(findings).toHaveLength(1);
      expect(findings[0]).toMatchObject({
        kind: 'deadlock',
        mechanism: 'lost wake-up',
        severity: 'warning',
        measure: { waiting_count: 8 },
      });
      expect(findings[0]?.summary).toContain('used is empty');
      expect(findings[0]?.where[0]?.function).toMatch(/acquire$/);
    });

    it('are not when one of them is in use for long', async () => {
      expect(await watch(path, 'long', HEALTHY_TURNS)).toEqual([]);
    });

    it('are not when the connections are in use and some wait', async () => {
      expect(await watch(path, 'busy', HEALTHY_TURNS)).toEqual([]);
    });

    it('nor are workers that wait for work', async () => {
      expect(await watch(path, 'workers', HEALTHY_TURNS)).toEqual([]);
    });
  },
);
