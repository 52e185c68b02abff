import { expect, it } from 'vitest';
import { expectedSnapshotPause, snapshotCost } from '../../../collectors/node/heap-snapshot.ts';

const MIB = 2 ** 20;
const saying = (answer: unknown): Parameters<typeof snapshotCost>[0] => ({
  send: () => Promise.resolve(answer),
});

it('is told from what is in V8’s heap, which is less than the memory of the process', async () => {
  const { used, pause } = await snapshotCost(saying({ usedSize: 5 * MIB }), process.pid);
  expect(used).toBe(5 * MIB);
  expect(pause).toBeCloseTo(0.5, 5);
  expect(pause).toBeLessThan(expectedSnapshotPause(process.pid));
});

it.each([{ usedSize: 1e15 }, { usedSize: -1 }, { usedSize: 'much' }, {}, null])(
  'is that of all its memory where V8 says what cannot be: %j',
  async (answer) => {
    const { pause } = await snapshotCost(saying(answer), process.pid);
    const most = expectedSnapshotPause(process.pid);
    expect(pause).toBeGreaterThan(0.5 * most);
    expect(pause).toBeLessThan(2 * most);
  },
);
