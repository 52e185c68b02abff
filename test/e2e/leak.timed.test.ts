import { join } from 'node:path';
import { describe, expect, it } from 'vitest';
import { interpreters } from '../environments.ts';
import { start } from '../platform/processes.ts';
import { parseReport, type ReportDocument, runCli } from './cli.ts';

/*
 * A program that loses 20 descriptors a second is caught in the default ten seconds, with what it loses; its twin, which closes what it opens, is not.
 */

const PROGRAM = join(import.meta.dirname, '..', 'targets', 'python', 'leaking.py');
const A_SECOND = 20;
const WATCH_S = 10;

async function watch(what: string): Promise<{ code: number | null; report: ReportDocument }> {
  const python = interpreters()[0]?.path ?? 'python3';
  const target = await start(python, [PROGRAM, what, String(A_SECOND)]);
  const args = ['attach', String(target.pid), '-d', String(WATCH_S), '--json', '--no-recording'];
  const run = await runCli(args, { limitS: WATCH_S + 30 });
  return { code: run.code, report: parseReport(run) };
}

describe.concurrent('a program', () => {
  it('that leaves files open is found, with the kind', async () => {
    const { code, report } = await watch('file');
    expect(report.findings).toMatchObject([{ code: 'TRC111', kind: 'fd-leak', mechanism: 'file' }]);
    const perSecond = report.findings[0]?.measure['growth_per_s'];
    expect(perSecond).toBeGreaterThan(A_SECOND * 0.8);
    expect(perSecond).toBeLessThan(A_SECOND * 1.2);
    expect(code).toBe(1);
  });

  it('that leaves connections open which the peer has closed is found, with their state', async () => {
    const { code, report } = await watch('socket');
    expect(report.findings).toMatchObject([
      { code: 'TRC113', kind: 'socket-leak', mechanism: 'close_wait' },
    ]);
    expect(code).toBe(1);
  });

  it('that opens as many and closes them is not', async () => {
    const { code, report } = await watch('nothing');
    expect(report.findings).toEqual([]);
    expect(code).toBe(0);
  });
});
