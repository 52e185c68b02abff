import { describe, expect, it } from 'vitest';
import { lockContention } from '../../src/analysis/lock-contention.ts';
import type { ContendedLock } from '../../src/core/contention.ts';
import { SNAPSHOT } from '../../src/core/semconv.ts';
import type { RecordingView } from '../../src/core/types.ts';

const FRAME = { function: 'serve', file: '/srv/app.py', line: 7 };
const LOCK: ContendedLock = {
  id: '0x7f',
  label: 'guard',
  busy: 36,
  waits: 60,
  looks: 5,
  waiters: ['server 0', 'server 1'],
  holders: [{ name: 'server 1', seen: 4, frame: FRAME }],
  frame: FRAME,
};

/** What the detector says of a run whose last look says this. */
function detect(readings: number, lock: Partial<ContendedLock> = {}) {
  const bodies = [
    { pid: 42, readings: 8, locks: [] },
    { pid: 42, readings, locks: [{ ...LOCK, ...lock }] },
  ];
  const view = {
    snapshots: (of: string) =>
      of === SNAPSHOT.contention
        ? bodies.map((body, i) => ({ kind: 'snapshot', at: 1000 + 2 * i, of, body }))
        : [],
  } as unknown as RecordingView;
  return [...lockContention.detect(view)];
}

describe('a lock that threads wait for', () => {
  it('is told with who has it, where, and which share of the time is waited', () => {
    const [finding, ...others] = detect(40);
    expect(others).toEqual([]);
    expect(finding).toMatchObject({
      code: 'TRC106',
      kind: 'lock-contention',
      severity: 'warning',
      confidence: 'likely',
      pid: 42,
      measure: { busy_ratio: 0.9, wait_ratio: 0.75, waits_count: 60, waiters_count: 2 },
    });
    expect(finding?.where).toMatchObject([{ function: 'serve', line: 7, thread: 'server 0' }]);
    expect(finding?.summary).toBe(
      'threads wait for guard in serve (/srv/app.py:7) in 90 % of readings; server 1 has it most often, in serve (/srv/app.py:7)',
    );
  });

  it('is a note where somebody waits less than half of the time, and nothing below a quarter', () => {
    expect(detect(40, { busy: 15, waits: 15 })).toMatchObject([{ severity: 'note' }]);
    expect(detect(40, { busy: 9, waits: 9 })).toEqual([]);
  });

  it('is not told from one burst, or few readings', () => {
    expect(detect(40, { looks: 1 })).toEqual([]);
    expect(detect(15, { busy: 14, waits: 20 })).toEqual([]);
  });

  it('is inconclusive where nobody was seen to have it', () => {
    expect(detect(40, { holders: [] })).toMatchObject([{ confidence: 'inconclusive' }]);
  });
});
