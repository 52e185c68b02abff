import { execFileSync } from 'node:child_process';
import { resolve } from 'node:path';
import { describe, expect, it } from 'vitest';
import { anchoredClock, fakeClock, monotonicNow, takeAnchor } from '../../src/core/clock.ts';

describe('monotonicNow', () => {
  it('is CLOCK_MONOTONIC: it lies between two readings of process.hrtime', () => {
    const before = Number(process.hrtime.bigint()) / 1e9;
    const now = monotonicNow();
    const after = Number(process.hrtime.bigint()) / 1e9;
    // The offset is measured once, in about 1 µs; 50 µs is the accuracy it is relied on for.
    expect(now).toBeGreaterThanOrEqual(before - 50e-6);
    expect(now).toBeLessThanOrEqual(after + 50e-6);
  });

  it('is so from the first call in a fresh process, where perf_hooks is not loaded yet', () => {
    // Compiled on the fly, since Node 20 does not run TypeScript: the module has no imports but types.
    const source = resolve(import.meta.dirname, '../../src/core/clock.ts');
    const script = `
      const ts = require('node:fs').readFileSync(${JSON.stringify(source)}, 'utf8');
      const body = /function measureOffset[\\s\\S]*?\\n}/.exec(ts)[0].replace(/\\): Seconds/, ')');
      const offset = new Function(body + '; return measureOffset()')();
      const a = Number(process.hrtime.bigint()) / 1e9, n = offset + performance.now() / 1e3, b = Number(process.hrtime.bigint()) / 1e9;
      console.log(Math.max(a - n, n - b, 0));`;
    const worst = Number(execFileSync(process.execPath, ['-e', script], { encoding: 'utf8' }));
    expect(worst).toBeLessThan(100e-6);
  });
});

describe('anchoredClock', () => {
  it('goes on from its anchor with the monotonic clock', () => {
    const anchor = takeAnchor();
    const clock = anchoredClock(anchor);
    expect(clock.now() - anchor.wall).toBeCloseTo(clock.mono() - anchor.mono, 2);
    expect(Math.abs(clock.now() - Date.now() / 1e3)).toBeLessThan(5);
  });
});

describe('fakeClock', () => {
  it('moves only when told to', () => {
    const clock = fakeClock(50);
    clock.advance(1.5);
    expect(clock.now()).toBe(51.5);
    expect(clock.mono()).toBe(1001.5);
  });
});
