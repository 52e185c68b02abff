import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, expect, it } from 'vitest';
import { startReady } from '../targets/harness.ts';
import { interpreters } from '../environments.ts';
import { parseReport, runCli } from './cli.ts';

/* Load from outside and a look inside, on one clock: the demo server has a planted mistake, and long prompts run into it. */

const DEMO = join(import.meta.dirname, '..', '..', 'demo');
/**
 * Half a second of its mistake: the 80 ms that it has are lost in the noise of a crowded machine.
 */
const SERVER = `import asyncio, sys
sys.path.insert(0, ${JSON.stringify(DEMO)})
import server
server.BLOCKED_S = 0.5
asyncio.run(server.main())`;
const folder = mkdtempSync(join(tmpdir(), 'trace-load-attach-'));
afterAll(() => rmSync(folder, { recursive: true, force: true }));

it('names the function in which the server stood still while requests were slow', async () => {
  const [python] = interpreters();
  const server = await startReady(python?.path ?? 'python3', ['-c', SERVER, '--seconds', '60']);
  const recording = join(folder, 'run');
  try {
    const run = await runCli(
      [
        'load',
        `http://127.0.0.1:${server.port}`,
        '--json',
        ['-c', '4', '-d', '10', '--attach', String(server.pid), '-o', recording],
        ['--mix', 'short=19:isl=10,osl=8', '--mix', 'long=1:isl=200,osl=8'],
      ].flat(),
      { cwd: folder },
    );
    const report = parseReport(run);
    // A finding; or on a crowded machine, that the client was the limit: what the server did is said all the same.
    expect([1, 6]).toContain(run.code);
    const slow = report.findings.find(({ code }) => code === 'TRC304');
    expect(slow).toMatchObject({ kind: 'slow-requests', severity: 'warning', pid: server.pid });
    expect(slow?.where[0]?.function).toBe('count_tokens');
    expect(slow?.measure['share_ratio']).toBeGreaterThan(0.5);
    const blocked = report.findings.find(({ code }) => code === 'TRC101');
    expect(blocked?.where[0]?.function).toBe('count_tokens');
    const shown = await runCli(['show', recording]);
    expect(shown.stdout).toMatch(/slow requests waited while the server[^.]*\s+in\s+count_tokens/);
  } finally {
    await server.stop();
  }
});
