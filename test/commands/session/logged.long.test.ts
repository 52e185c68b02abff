import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, describe, expect, it, onTestFinished } from 'vitest';
import { main } from '../../../src/cli.ts';
import { readSession } from '../../../src/session/session.ts';
import type { SessionEvidence } from '../../../src/core/session.ts';
import { runCli } from '../../e2e/cli.ts';
import { interpreters } from '../../environments.ts';
import { startReady } from '../../targets/harness.ts';
import { fakeEnvironment } from '../fake-environment.ts';

/** What looks, profiles and schedules came to stands in the session afterwards. */

const KINDS = join(import.meta.dirname, '../../targets/python/task_kinds.py');
/** The last increment gets lost when the first one of the two goes on late. */
const LOST = `import asyncio
balance = 0
async def add():
    global balance
    now = balance
    await asyncio.sleep(0)
    balance = now + 1
async def main():
    first = asyncio.create_task(add())
    for _ in range(4):
        await asyncio.sleep(0)
    await add()
    await first
    assert balance == 2, balance
asyncio.run(main())
`;
const python = interpreters()[0]?.path ?? 'python3';

let cwd: string;
beforeEach(async () => {
  cwd = mkdtempSync(join(tmpdir(), 'trace-logged-'));
  const environment = fakeEnvironment({ cwd });
  await main(['session', 'start', 'it hangs', '--no-environment'], environment);
});
afterEach(() => rmSync(cwd, { recursive: true, force: true }));

function evidence(): readonly SessionEvidence[] {
  const text = readFileSync(join(cwd, '.planning', 'debug', 'it-hangs.md'), 'utf8');
  return readSession('it-hangs', text).evidence;
}

describe('what other verbs find out', () => {
  it('of a process is written into the open session: tasks, threads, heap, profile, doctor', async () => {
    const target = await startReady(python, [KINDS]);
    onTestFinished(() => target.stop());
    const pid = String(target.pid);
    const commands = [
      ['tasks', pid],
      ['tasks', pid, '--threads', '--json'],
      ['heap', pid, '-i', '500ms'],
      ['profile', pid, '-d', '0.2', '-q'],
      ['doctor', '-q'],
    ];
    for (const command of commands) {
      const { code, stderr } = await runCli(command, { cwd });
      expect({ code, stderr }).toEqual({ code: 0, stderr: '' });
    }
    await runCli(['tasks', pid, '--no-session'], { cwd });
    const seen = evidence();
    expect(seen.map(({ checked }) => checked)).toEqual(
      commands.map((command) => ['trace', ...command].join(' ')),
    );
    const said = [
      new RegExp(`^${pid} .*: \\d+ tasks .*; most: \\d+ of \\S+, .* at .*task_kinds\\.py:\\d+$`),
      new RegExp(`^${pid} .*: \\d+ threads?, .* the GIL$`),
      /grew|nothing grew/,
      new RegExp(`^pid ${pid}`),
      /^(?:[a-z-]+ (?:limited|missing)(?:, |$))+|^all is ok$/,
    ];
    for (const [i, pattern] of said.entries()) expect(seen[i]?.found).toMatch(pattern);
  }, 120_000);

  it('of schedules is, too: explore, replay, shrink', async () => {
    writeFileSync(join(cwd, 'lost.py'), LOST);
    const command = ['--', python, 'lost.py'];
    const explored = await runCli(['repro', 'explore', ...command], { cwd });
    expect(explored, explored.stderr).toMatchObject({ code: 1 });
    const schedule = /^schedule of .*: (\S+)$/m.exec(explored.stdout)?.[1] ?? '';
    await runCli(['repro', 'replay', '--schedule', schedule, '-n', '2', ...command], { cwd });
    const shrunk = await runCli(['repro', 'shrink', '-q', '--schedule', schedule, ...command], {
      cwd,
    });
    expect(shrunk.code, shrunk.stderr).toBe(0);
    const found = evidence().map((one) => one.found);
    expect(found[0]).toContain(`: ${schedule}; repeated: fails 5 of 5`);
    expect(found[0]).not.toContain('AssertionError');
    expect(found[1]).toMatch(/^it exited with 1; repeated: fails 2 of 2/);
    expect(found[2]).toMatch(/waits before, \d+ left.*; verified: fails /);
  }, 120_000);

  it('takes nothing from the result where the session cannot be written', async () => {
    const path = join(cwd, '.planning', 'debug', 'it-hangs.md');
    const environment = fakeEnvironment({ cwd });
    rmSync(path);
    const doctor = await main(['doctor', '--json'], environment);
    expect(doctor).toBe(0);
    expect(JSON.parse(environment.out())).toMatchObject({ command: 'doctor' });
    const gone = fakeEnvironment({ cwd });
    expect(await main(['doctor', '--session', 'it-hangs'], gone)).toBe(3);
    expect(gone.out()).toBe('');
  }, 60_000);
});
