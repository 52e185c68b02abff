import { spawn } from 'node:child_process';
import { join } from 'node:path';
import { setTimeout as wait } from 'node:timers/promises';
import { beforeAll, describe, expect, it, type TestContext } from 'vitest';
import { pythonEnvironment } from '../environments.ts';
import { parseReport, startCli, runCli, verdicts } from './cli.ts';

/* `--follow-restarts`: a target that ends and comes back is watched again, and no other process is. */

const SERVER = join(import.meta.dirname, '..', 'targets', 'python', 'asyncio_server.py');
let python = '';
beforeAll(async () => ({ python } = await pythonEnvironment([])));

/** A server that blocks every 300 ms; `mark` is the seed, which makes its command line its own. */
async function serve(context: TestContext, mark: number) {
  const flags = `--kinds sleep --durations 80 --reps 200 --start-s 0.2 --seconds 60 --truth /dev/null`;
  const child = spawn(python, [SERVER, ...flags.split(' '), '--seed', String(mark)], {
    stdio: ['ignore', 'pipe', 'inherit'],
  });
  context.onTestFinished(() => void child.kill('SIGKILL'));
  await new Promise((resolve) => child.stdout.once('data', resolve));
  const ended = new Promise((resolve) => child.once('exit', resolve));
  const { pid = 0 } = child;
  return { pid, end: async () => (child.kill('SIGKILL'), await ended) };
}

const restartsOf = ({ findings }: ReturnType<typeof parseReport>) =>
  findings.filter(({ code }) => code === 'TRC104');

describe.concurrent('a target that ends', () => {
  it('is joined each time it comes back, and nothing else is', async (context) => {
    const first = await serve(context, 1);
    const args = [
      'attach',
      String(first.pid),
      '--no-recording',
      '--json',
      '--follow-restarts',
      '-v',
    ];
    const run = startCli(args);
    // Its twin with another seed was there before and stays.
    await serve(context, 2);
    await run.said('runtime: ');
    // Real time: it is watched for a while.
    await wait(2500);
    await first.end();
    await run.said(`pid ${first.pid} ended; waiting`);
    await serve(context, 3);
    const second = await serve(context, 1);
    await run.said(`came back as pid ${second.pid}`);
    // Real time: it is watched for a while.
    await wait(2500);
    await second.end();
    const third = await serve(context, 1);
    await run.said(`came back as pid ${third.pid}`);
    // Real time: it is watched for a while.
    await wait(2500);
    run.child.kill('SIGINT');
    const report = parseReport(await run.ended);
    const pids = [first, second, third].map(({ pid }) => pid);
    expect(report.targets.map(({ pid }) => pid)).toEqual(pids);
    expect(restartsOf(report)).toMatchObject([
      { severity: 'note', measure: { restarts_count: 2 }, pid: third.pid },
    ]);
    expect(verdicts(report)[0]).toMatchObject({ kind: 'loop-blocked' });
  });

  it('and stays away is waited for as long as was said', async (context) => {
    const target = await serve(context, 4);
    const run = startCli(
      [
        'attach',
        String(target.pid),
        '--no-recording',
        '--json',
        '--follow-restarts=1',
        '-d',
        '50',
        '-v',
      ],
      { limitS: 30 },
    );
    await run.said('runtime: ');
    // Real time: something is observed before it ends.
    await wait(2500);
    await target.end();
    const ended = await run.ended;
    const { stderr } = ended;
    // Its parent reaps it at once: only root hears from the kernel how it ended, in a short run too.
    if (process.getuid?.() === 0)
      expect(parseReport(ended).findings).toContainEqual(
        expect.objectContaining({ kind: 'process-exit', mechanism: 'SIGKILL' }),
      );
    expect(stderr).toContain(`what ended as pid ${target.pid} did not come back within 1 s`);
  });

  it('is followed one at a time', async () => {
    const { code, stderr } = await runCli(['attach', '1', '2', '--follow-restarts']);
    expect(code).toBe(2);
    expect(stderr).toContain('--follow-restarts and several targets contradict each other');
  });
});
