import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, describe, expect, it } from 'vitest';
import { startInspected } from '../collectors/node/inspected.ts';
import { type Kill, KILL_STAGES, killAt } from '../collectors/node/kills.ts';

/* The short version of test/bench/inspect.bench.ts, which kills a hundred times. */

const folder = mkdtempSync(join(tmpdir(), 'tracewright-kills-'));
afterAll(() => rmSync(folder, { recursive: true, force: true }));

async function killInTurn(
  stages: readonly (typeof KILL_STAGES)[number][],
  guardian: boolean,
): Promise<Kill[]> {
  const target = await startInspected();
  try {
    const kills: Kill[] = [];
    for (const stage of stages) kills.push(await killAt(target, stage, { folder, guardian }));
    return kills;
  } finally {
    await target.stop();
  }
}

describe('an inspection whose trace is killed', () => {
  it('is over two seconds later, whatever it was doing', async () => {
    const kills = await killInTurn([...KILL_STAGES, 'profiling'], false);
    expect(kills).toHaveLength(6);
    for (const kill of kills) expect(kill).toMatchObject({ stayed: false, cleaned: true });
  });

  it('is cleaned up by trace cleanup, or before by its lease, where the guardian was killed too', async () => {
    const kills = await killInTurn(['signalling', 'open', 'leased', 'profiling'], true);
    expect(kills).toHaveLength(4);
    for (const kill of kills) expect(kill).toMatchObject({ cleaned: true });
  });
});
