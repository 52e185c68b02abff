import { appendFileSync, mkdirSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { afterEach, beforeEach, expect, it } from 'vitest';
import { main } from '../../../src/cli.ts';
import { fakeEnvironment } from '../fake-environment.ts';
import { type HostileCheckout, hostileCheckout } from './hostile-checkout.ts';

/** What a checkout names for git to run is not run by a session in it. */

const LIMIT_MS = 120_000;

let checkout: HostileCheckout;
beforeEach(() => {
  checkout = hostileCheckout();
});
afterEach(() => checkout.remove());

async function session(...args: string[]): Promise<{ code: number; out: string; err: string }> {
  const cwd = checkout.folder;
  // Variables say what is run as well as files do.
  const env = {
    PATH: process.env['PATH'] ?? '',
    HOME: cwd,
    XDG_STATE_HOME: join(cwd, '.git', 'state'),
    GIT_EXTERNAL_DIFF: 'touch ran-by-variable',
    GIT_CONFIG_COUNT: '1',
    GIT_CONFIG_KEY_0: 'core.fsmonitor',
    GIT_CONFIG_VALUE_0: 'touch ran-by-variable; false',
  };
  const environment = fakeEnvironment({ cwd, env });
  const code = await main(['session', ...args], environment);
  return { code, out: environment.out(), err: environment.err() };
}

it(
  'plain git runs what the checkout names',
  () => {
    const { git, ran, folder } = checkout;
    git('status');
    // One that does not answer ends git.
    git('config', '--unset', 'filter.served.process');
    git('log', '-1');
    git('diff');
    git('diff', '--no-ext-diff');
    git('worktree', 'add', '--detach', '--quiet', join(folder, '..', 'tree'), 'HEAD');
    git('add', 'account.mjs', 'notes.txt');
    git('commit', '-m', 'second');
    expect(ran()).toEqual(
      expect.arrayContaining([
        'clean',
        'external-diff',
        'fsmonitor',
        'gpg',
        'late-smudge',
        'post-checkout',
        'pre-commit',
        'process',
        'smudge',
        'submodule',
        'textconv',
      ]),
    );
  },
  LIMIT_MS,
);

it(
  'a session in it runs none of that, from its start to an attempt, and sees the changes',
  async () => {
    const { folder, ran, git } = checkout;
    // Each verb commits its session.
    mkdirSync(join(folder, '.planning'));
    writeFileSync(join(folder, '.planning', 'config.json'), '{"commit_docs": true}');
    const started = await session('start', 'it hangs', '--actual', 'it hangs');
    expect(started).toMatchObject({ code: 0, err: '' });
    expect(ran()).toEqual([]);
    const text = readFileSync(join(folder, '.planning', 'debug', 'it-hangs.md'), 'utf8');
    expect(text).toMatch(/git_commit: "?[0-9a-f]{12} /);
    expect(text).toMatch(/git_dirty: .*account\.mjs/);

    for (const claim of ['one', 'two', 'three'])
      await session('hypothesis', 'add', claim, '--refutes', 'x');
    await session('hypothesis', 'eliminate', 'H2', '--evidence', 'x');
    await session('hypothesis', 'confirm', 'H1', '--evidence', 'x');
    const command = ['sh', '-c', 'grep -c . account.mjs; grep -q three account.mjs'];
    expect(await session('reproduce', '--', ...command)).toMatchObject({ code: 0 });
    const diagnosis = ['--root-cause', 'x', '--place', 'account.mjs:1=two', '--why', 'x'];
    const fix = ['--fix', 'x', '--file', 'account.mjs', '--changes', 'x', '--not-fixed', 'x'];
    await session('diagnose', ...diagnosis, ...fix);
    const approved = await session('approve', '--approved-by', 'ana');
    expect(approved).toMatchObject({ code: 0, err: '' });
    expect(ran()).toEqual([]);

    appendFileSync(join(folder, 'account.mjs'), 'three\n');
    appendFileSync(join(folder, 'sub', 'part.mjs'), 'three\n');
    const attempt = await session('attempt', 'a line more');
    expect(attempt).toMatchObject({ code: 0, err: '' });
    expect(attempt.out).toContain('before: 1 of 1 runs failed; after: 0 of 1 runs failed');
    expect(ran()).toEqual([]);
    expect(git('--no-pager', 'log', '--no-show-signature', '--format=%s')).toContain(
      'debug(it-hangs): session attempt',
    );
  },
  LIMIT_MS,
);
