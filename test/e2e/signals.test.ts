import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { type RunningTarget, startTarget } from '../targets/harness.ts';
import { parseReport, startCli } from './cli.ts';

/* Signals that trace itself gets. */

let target: RunningTarget;
beforeAll(async () => {
  target = await startTarget('asyncio', { seconds: 300 });
});
afterAll(() => target.stop());

describe('SIGUSR1', () => {
  it('does not open an inspector, and does not end the run', async () => {
    const args = ['attach', String(target.pid), '-d', '2', '--json', '--no-recording', '-v'];
    const run = startCli(args);
    await run.said('runtime: ');
    run.child.kill('SIGUSR1');
    const ended = await run.ended;
    expect(ended).toMatchObject({ signal: null });
    expect(ended.stderr).not.toMatch(/Debugger listening|ws:\/\//);
    expect(parseReport(ended)).toMatchObject({ interrupted: false });
  });
});
