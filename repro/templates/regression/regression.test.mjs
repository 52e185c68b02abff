// Fails while the fault is there and passes after the fix: npx vitest run
import { spawnSync } from 'node:child_process';
import { join } from 'node:path';
import { expect, it } from 'vitest';

/** How many runs must all be free of the fault: it does not show in each. */
const RUNS = Number(process.env.REPRO_RUNS ?? 5);
const SCRIPT = join(import.meta.dirname, 'repro.mjs');
const LIMIT_MS = 600_000;

it.each(Array.from({ length: RUNS }, (_, i) => i + 1))(
  'does not come back with seed %i',
  (seed, { skip }) => {
    const env = { ...process.env, REPRO_SEED: String(seed) };
    const { status, stdout, stderr } = spawnSync(process.execPath, [SCRIPT], {
      env,
      encoding: 'utf8',
    });
    if (status === 125) skip(stderr);
    expect(status, `${stdout}${stderr}`).toBe(0);
  },
  LIMIT_MS,
);
