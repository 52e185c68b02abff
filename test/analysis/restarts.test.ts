import { describe, expect, it } from 'vitest';
import { restarts } from '../../src/analysis/restarts.ts';
import { ATTR, EVENT } from '../../src/core/semconv.ts';
import { memoryRecording } from '../../src/recording/memory.ts';
import { START, T0 } from './simulated-run.ts';

/** The findings of a run whose target ended after each of these lives, and was away for two seconds each time. */
function findings(lives: readonly number[]) {
  const memory = memoryRecording(START);
  let at = T0;
  for (const [n, lived] of lives.entries()) {
    at += lived;
    const [previous, pid] = [100 + n, 101 + n];
    const attributes = { [ATTR.pid]: pid, [ATTR.restartPrevious]: previous };
    const times = { [ATTR.restartLived]: lived, [ATTR.restartAway]: 2 };
    const event = { kind: 'event', at, severity: 'warn', body: '' } as const;
    memory.write({ ...event, name: EVENT.targetRestart, attributes: { ...attributes, ...times } });
    // The end is noticed after the restart.
    const exit = { [ATTR.pid]: previous, [ATTR.exitCode]: 3 };
    const body = `pid ${previous} exited with code 3`;
    memory.write({ ...event, at: at + 0.5, name: EVENT.targetExit, body, attributes: exit });
  }
  return [...restarts.detect(memory.view())];
}

describe('restarts', () => {
  it('are nothing to say where there was none', () => {
    expect(findings([])).toEqual([]);
  });

  it('are a note with how it ended, and how long it was away', () => {
    expect(findings([86_400])).toMatchObject([
      {
        code: 'TRC104',
        kind: 'process-exit',
        mechanism: 'restart',
        severity: 'note',
        pid: 101,
        summary: 'the service ended and came back once, away for 2 s',
        evidence: [
          {},
          {
            summary:
              'pid 100 exited with code 3, 24 h after its start; pid 101 took its place 2 s later',
          },
        ],
        measure: { restarts_count: 1, away_s: 2 },
      },
    ]);
  });

  it.each([
    ['two lives that were short, after a long one', [900, 5, 7], 'critical'],
    ['one short life', [900, 5, 900], 'note'],
    ['a short life before the run, and one after', [5, 5], 'note'],
    ['restarts once an hour', [3600, 3600, 3600, 3600], 'note'],
  ])('are told from a crash loop: %s', (_, lives, severity) => {
    const found = findings(lives);
    expect(found).toHaveLength(1);
    expect(found[0]).toMatchObject({ severity, measure: { restarts_count: lives.length } });
  });

  it('list the last few of many', () => {
    const [finding] = findings(Array.from({ length: 40 }, () => 3));
    expect(finding?.evidence).toHaveLength(6);
    expect(finding?.evidence[0].summary).toBe('the last 5 of 40 restarts');
  });
});
