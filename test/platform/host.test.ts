import { execFileSync } from 'node:child_process';
import { readFileSync } from 'node:fs';
import { describe, expect, it } from 'vitest';
import { describeHost, stealTime } from '../../src/platform/host.ts';

describe('the host', () => {
  it('is described as uname, nproc and free describe it', () => {
    const host = describeHost();
    const run = (...command: string[]) =>
      execFileSync(command[0] ?? '', command.slice(1), { encoding: 'utf8' }).trim();
    expect(host.kernel).toBe(run('uname', '-r'));
    expect(host.architecture).toBe(run('uname', '-m'));
    expect(host.coresAvailable).toBeLessThanOrEqual(host.cores);
    expect(host.cores).toBe(Number(run('getconf', '_NPROCESSORS_ONLN')));
    expect(host.memory).toBe(
      Number(/^MemTotal:\s+(\d+) kB/.exec(readFileSync('/proc/meminfo', 'utf8'))?.[1]) * 1024,
    );
  });

  it('counts stolen time in seconds over all cores', () => {
    const ticks = Number(
      /^cpu (?: \d+){7} (\d+)/.exec(readFileSync('/proc/stat', 'utf8'))?.[1] ?? 0,
    );
    expect(stealTime()).toBeGreaterThanOrEqual(ticks / 100);
    expect(stealTime()).toBeLessThan(ticks / 100 + 60);
  });
});
