import { describe, expect, it } from 'vitest';
import { listCandidates } from '../../src/platform/target-candidates.ts';
import { start, startShell } from './processes.ts';

describe('the list of candidates', () => {
  it('has servers with runtime, title, CPU and age, the busiest first, and no programs without a runtime', async () => {
    const busy = await start(process.execPath, [
      '-e',
      'console.log(1); for (;;);',
      '--',
      '--api-key=x',
    ]);
    const idle = await start(process.execPath, [
      '-e',
      'console.log(1); setInterval(() => {}, 1e3)',
    ]);
    const shell = await startShell('echo; read nothing');
    const candidates = await listCandidates();
    const of = (pid: number) => candidates.find(({ target }) => target.pid === pid);
    expect(of(busy.pid)).toMatchObject({
      runtime: { name: 'node', version: process.versions.node },
      parent: process.pid,
      title: expect.stringContaining('--api-key=***'),
    });
    expect(of(busy.pid)?.cpu).toBeGreaterThan(of(idle.pid)?.cpu ?? Number.NaN);
    expect(of(idle.pid)?.age).toBeGreaterThan(0);
    expect(of(shell.pid)).toBeUndefined();
    expect(of(process.pid)).toBeUndefined();
    const cpu = candidates.map((candidate) => candidate.cpu);
    expect(cpu).toEqual(cpu.toSorted((a, b) => b - a));
  });
});
