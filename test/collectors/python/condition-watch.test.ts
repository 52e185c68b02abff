import { join } from 'node:path';
import { describe, expect, it } from 'vitest';
import { CONDITION_LOOK } from '../../../collectors/python/condition-watch.ts';
import { SNAPSHOT } from '../../../src/core/semconv.ts';
import { interpreters } from '../../environments.ts';
import { findingsOfLook } from './watch-look.ts';

const PROGRAM = join(import.meta.dirname, '../../targets/python/conditions.py');
/** Until a program that misses a wake-up must have shown it. */
const MOST_TURNS = 100;
/** Of a program that has nothing to show. */
const HEALTHY_TURNS = 10;

const watch = (python: string, mode: string, turns: number): ReturnType<typeof findingsOfLook> =>
  findingsOfLook(
    {
      python,
      program: [PROGRAM, mode],
      look: CONDITION_LOOK,
      kind: SNAPSHOT.missed,
      every: { real: 0.1, told: 2 },
    },
    turns,
  );

describe.concurrent.each(interpreters())(
  'tasks that wait for a condition, Python $version',
  ({ path }) => {
    it('are told when what they wait for is there and nobody woke them', async () => {
      const findings = await watch(path, 'lost', MOST_TURNS);
      expect(findings).toHaveLength(1);
      expect(findings[0]).toMatchObject({
        code: 'TRC105',
        kind: 'deadlock',
        mechanism: 'lost wake-up',
        severity: 'warning',
        confidence: 'likely',
      });
      expect(findings[0]?.summary).toContain('self.jobs');
      expect(findings[0]?.where[0]?.function).toMatch(/take$/);
      expect(findings[0]?.where[1]?.file).toMatch(/asyncio\/locks\.py$/);
    });

    it.each(['idle', 'busy', 'full'])('are not when it is %s', async (mode) => {
      expect(await watch(path, mode, HEALTHY_TURNS)).toEqual([]);
    });
  },
);
