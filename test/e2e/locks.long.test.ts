import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, describe, expect, it } from 'vitest';
import { interpreters } from '../environments.ts';
import { startReady } from '../targets/harness.ts';
import { parseReport, type ReportDocument, runCli } from './cli.ts';

/* Deadlocks in real processes, and the same programs without one: attached to by pid, and read again from the recording. */

const PROGRAMS = join(import.meta.dirname, '../targets/python');
const WATCH_S = 9;
const folder = mkdtempSync(join(tmpdir(), 'tracewright-locks-'));
const [python] = interpreters();

afterAll(() => rmSync(folder, { recursive: true, force: true }));

/** What attach says, and what show says of its recording. */
async function watched(
  program: string,
  name: string,
): Promise<{ attached: ReportDocument; shown: ReportDocument }> {
  const target = await startReady(python?.path ?? 'python3', [join(PROGRAMS, program), name]);
  const recording = join(folder, `${program}-${name}`);
  try {
    const args = ['attach', String(target.pid), '-d', String(WATCH_S), '--json', '-o', recording];
    const attached = parseReport(await runCli(args, { limitS: WATCH_S + 60 }));
    const shown = parseReport(await runCli(['show', recording, '--json'], { limitS: 60 }));
    return { attached, shown };
  } finally {
    await target.stop();
  }
}

function deadlocks({ findings }: ReportDocument): readonly unknown[] {
  return findings
    .filter(({ kind }) => kind === 'deadlock')
    .map(({ mechanism, confidence, where }) => [
      mechanism,
      confidence,
      where[0]?.function.split('.').at(-1),
    ]);
}

describe('attach to what waits for itself', () => {
  it.concurrent.each([
    ['locking.py', 'order', ['lock order', 'confirmed', /^(?:settle|transfer)$/]],
    ['locking.py', 'own', ['loop waits for itself', 'confirmed', /^ask$/]],
    ['locking_tasks.py', 'order', ['lock order', 'confirmed', /^(?:reserve|checkout)$/]],
  ] as const)(
    '%s %s: says so, with the place',
    async (program, name, [mechanism, confidence, place]) => {
      const { attached, shown } = await watched(program, name);
      expect(deadlocks(attached)).toEqual([[mechanism, confidence, expect.stringMatching(place)]]);
      expect(deadlocks(shown)).toEqual(deadlocks(attached));
    },
  );

  it.concurrent.each([
    ['locking.py', 'idle'],
    ['locking_tasks.py', 'idle'],
  ])('%s %s, whose waits are as they should be: nothing', async (program, name) => {
    const { attached } = await watched(program, name);
    expect(deadlocks(attached)).toEqual([]);
  });
});
