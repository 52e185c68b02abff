import { execFileSync } from 'node:child_process';
import {
  chmodSync,
  existsSync,
  mkdirSync,
  mkdtempSync,
  readFileSync,
  rmSync,
  writeFileSync,
} from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { runGit } from '../../src/platform/git.ts';

const LIMIT_MS = 60_000;
const limit = 30;
const path = process.env['PATH'] ?? '';
let root = '';
let folder = '';
beforeEach(() => {
  root = mkdtempSync(join(tmpdir(), 'trace-git-'));
  folder = join(root, 'checkout');
  mkdirSync(folder);
});
afterEach(() => rmSync(root, { recursive: true, force: true }));

const git = (...args: readonly string[]): string =>
  execFileSync('git', ['-c', 'user.name=a', '-c', 'user.email=a@example.com', ...args], {
    cwd: folder,
    encoding: 'utf8',
    stdio: 'pipe',
    env: { ...process.env, HOME: root },
  });
const env = (more: Readonly<Record<string, string>> = {}) => ({ PATH: path, HOME: root, ...more });

function commit(name: string, text: string): void {
  writeFileSync(join(folder, name), text);
  git('add', name);
  git('commit', '-qm', `${name}: ${text.trim()}`);
}

describe('git', { timeout: LIMIT_MS }, () => {
  it('fetches nothing for whom a checkout names, by a protocol that is a command', async () => {
    git('init', '-q');
    commit('a', 'one\n');
    git('config', 'core.repositoryFormatVersion', '1');
    git('config', 'extensions.partialClone', 'origin');
    git('config', 'remote.origin.promisor', 'true');
    git('config', 'protocol.ext.allow', 'always');
    const mark = join(root, 'ran');
    git('config', 'remote.origin.url', `ext::touch ${mark}`);
    const blob = git('rev-parse', 'HEAD:a').trim();
    rmSync(join(folder, '.git', 'objects', blob.slice(0, 2), blob.slice(2)));
    writeFileSync(join(folder, 'a'), 'two\n');
    const run = await runGit(['diff', 'HEAD', '--'], { folder, env: env(), limit });
    expect(run).toMatchObject({ ended: 'exit' });
    expect(existsSync(mark)).toBe(false);
    // What git does of its own accord.
    expect(() => git('diff', 'HEAD', '--')).toThrow();
    expect(existsSync(mark)).toBe(true);
  });

  it('bisects without the filters of the checkout, whatever they are called', async () => {
    git('init', '-q');
    commit('.gitattributes', '*.txt filter=a.b\n');
    for (const text of ['one\n', 'two\n', 'three\n', 'four\n']) commit('a.txt', text);
    const mark = join(root, 'ran');
    git('config', 'filter.a.b.smudge', `touch ${mark}; cat`);
    const tree = join(root, 'tree');
    const ask = async (where: string, ...args: readonly string[]) => {
      const run = await runGit(args, { folder: where, env: env(), limit });
      expect(run).toMatchObject({ ended: 'exit', code: 0 });
      return run.ended === 'exit' ? run.stdout : '';
    };
    await ask(folder, 'worktree', 'add', '--no-checkout', '--detach', '--quiet', tree, 'HEAD');
    await ask(tree, 'reset', '--hard', '--quiet');
    expect(readFileSync(join(tree, 'a.txt'), 'utf8')).toBe('four\n');
    await ask(tree, 'bisect', 'start', 'HEAD', 'HEAD~3', '--');
    expect(readFileSync(join(tree, 'a.txt'), 'utf8')).toMatch(/^(?:two|three)\n$/);
    await ask(tree, 'bisect', 'bad');
    expect(existsSync(mark)).toBe(false);
  });

  it('is not run where a filter has a name that cannot be turned off', async () => {
    git('init', '-q');
    commit('a', 'one\n');
    const mark = join(root, 'ran');
    const section = `[filter "a=b"]\n\tclean = "touch ${mark}; cat"\n`;
    writeFileSync(join(folder, '.git', 'config'), section, { flag: 'a' });
    writeFileSync(join(folder, '.gitattributes'), '* filter=a=b\n');
    writeFileSync(join(folder, 'a'), 'two\n');
    const run = await runGit(['status'], { folder, env: env(), limit });
    expect(run).toMatchObject({
      ended: 'not-started',
      reason: expect.stringContaining('cannot be turned off'),
    });
    expect(existsSync(mark)).toBe(false);
  });

  it('has none of the variables that name programs or places, or who called sudo', async () => {
    const bin = join(root, 'bin');
    mkdirSync(bin);
    const seen = join(root, 'seen');
    writeFileSync(join(bin, 'git'), `#!/bin/sh\necho "$*" >>'${seen}'\nenv >>'${seen}'\n`);
    chmodSync(join(bin, 'git'), 0o755);
    const given = env({
      PATH: `.:${bin}::/usr/bin:/bin`,
      GIT_DIR: '/other',
      GIT_SSH: 'planted',
      GIT_EXEC_PATH: '/other',
      GIT_CONFIG_GLOBAL: '/other',
      GIT_AUTHOR_NAME: 'ana',
      SUDO_UID: '1000',
    });
    await runGit(['status'], { folder, env: given, limit });
    const text = readFileSync(seen, 'utf8');
    for (const name of ['GIT_DIR', 'GIT_SSH', 'GIT_EXEC_PATH', 'GIT_CONFIG_GLOBAL', 'SUDO_UID'])
      expect(text).not.toMatch(new RegExp(`^${name}=`, 'm'));
    expect(text).toContain('GIT_AUTHOR_NAME=ana\n');
    expect(text).toContain('GIT_ALLOW_PROTOCOL=\n');
    expect(text).toContain(`PATH=${bin}:/usr/bin:/bin\n`);
    expect(text).toContain('core.hooksPath=/dev/null');
  });

  it('says that it is not there, and how it ended', async () => {
    const none = await runGit(['status'], { folder, env: { PATH: root }, limit });
    expect(none).toEqual({ ended: 'not-started', reason: 'no git on PATH' });
    const wrong = await runGit(['log', '-1'], { folder, env: env(), limit });
    expect(wrong).toMatchObject({
      ended: 'exit',
      code: 128,
      stderr: expect.stringContaining('not a git repository'),
    });
    const bin = join(root, 'bin');
    mkdirSync(bin);
    writeFileSync(join(bin, 'git'), '#!/bin/sh\nexec sleep 100\n');
    chmodSync(join(bin, 'git'), 0o755);
    const late = { folder, env: { PATH: `${bin}:/bin:/usr/bin` }, limit: 0.2 };
    expect(await runGit(['status'], late)).toEqual({ ended: 'timeout' });
  });
});
