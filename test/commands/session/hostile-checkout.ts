import { execFileSync } from 'node:child_process';
import { chmodSync, mkdirSync, mkdtempSync, readdirSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';

/** A checkout whose configuration, attributes and hooks name programs wherever git takes one. */
export interface HostileCheckout {
  readonly folder: string;
  /** The programs that ran since the last time that somebody asked, by what named them. */
  readonly ran: () => readonly string[];
  /** Plain git in it, which runs what it names; what it prints, also where it fails. */
  readonly git: (...args: readonly string[]) => string;
  remove(): void;
}

const HOOKS = [
  'commit-msg',
  'post-checkout',
  'post-commit',
  'post-index-change',
  'pre-commit',
  'prepare-commit-msg',
  'reference-transaction',
] as const;

export function hostileCheckout(): HostileCheckout {
  const root = mkdtempSync(join(tmpdir(), 'trace-hostile-'));
  const [folder, marks, inner] = ['checkout', 'ran', 'inner'].map((name) => join(root, name));
  if (folder === undefined || marks === undefined || inner === undefined) throw new Error('none');
  for (const one of [folder, marks, inner]) mkdirSync(one);
  const git = (cwd: string, ...args: readonly string[]): string => {
    try {
      return execFileSync(
        'git',
        ['-C', cwd, '-c', 'user.name=a', '-c', 'user.email=a@example.com', ...args],
        { encoding: 'utf8', env: { ...process.env, HOME: root }, stdio: 'pipe' },
      );
    } catch (error) {
      return String(error);
    }
  };
  const write = (path: string, text: string): void => writeFileSync(path, text);
  const mark = (name: string, then = 'cat'): string => `touch '${marks}/${name}'; ${then}`;

  // Committed while nothing is planted.
  git(inner, 'init', '-q');
  write(join(inner, 'part.mjs'), 'one\n');
  write(join(inner, '.gitattributes'), '*.mjs filter=inner\n');
  git(inner, 'add', '.');
  git(inner, 'commit', '-qm', 'inner');
  git(folder, 'init', '-q');
  write(join(folder, 'account.mjs'), 'one\n');
  write(join(folder, 'notes.txt'), 'one\n');
  write(join(folder, 'page.late'), 'one\n');
  write(
    join(folder, '.gitattributes'),
    '*.mjs filter=plain diff=driver\n*.md filter=plain\n*.txt filter=served\n*.late filter=late\n',
  );
  git(folder, '-c', 'protocol.file.allow=always', 'submodule', '--quiet', 'add', inner, 'sub');
  git(folder, 'config', '-f', '.gitmodules', 'submodule.sub.ignore', 'none');
  git(folder, 'add', '.');
  git(folder, 'commit', '-qm', 'first');

  const set = (where: string, key: string, value: string): string =>
    git(where, 'config', key, value);
  const sub = join(folder, 'sub');
  set(sub, 'filter.inner.clean', mark('submodule'));
  for (const [key, value] of [
    ['user.name', 'a'],
    ['user.email', 'a@example.com'],
    ['filter.plain.clean', mark('clean')],
    ['filter.plain.smudge', mark('smudge')],
    ['filter.plain.required', 'true'],
    ['filter.served.process', mark('process', 'false')],
    ['diff.external', mark('external-diff', 'true')],
    ['diff.driver.command', mark('diff-driver', 'true')],
    ['diff.driver.textconv', mark('textconv')],
    ['core.fsmonitor', mark('fsmonitor', 'false')],
    ['core.editor', mark('editor', 'true')],
    ['core.pager', mark('pager')],
    ['core.sshCommand', mark('ssh', 'false')],
    ['commit.gpgSign', 'true'],
    ['log.showSignature', 'true'],
    ['includeIf.gitdir:**/worktrees/**.path', 'late.config'],
  ] as const)
    set(folder, key, value);
  const gpg = join(root, 'gpg');
  write(gpg, `#!/bin/sh\n${mark('gpg', 'false')}\n`);
  chmodSync(gpg, 0o755);
  set(folder, 'gpg.program', gpg);
  // What is included in another worktree alone.
  write(
    join(folder, '.git', 'late.config'),
    `[filter "late"]\n\tsmudge = "${mark('late-smudge')}"\n`,
  );
  for (const name of HOOKS) {
    const hook = join(folder, '.git', 'hooks', name);
    mkdirSync(join(folder, '.git', 'hooks'), { recursive: true });
    write(hook, `#!/bin/sh\n${mark(name, 'cat >/dev/null')}\n`);
    chmodSync(hook, 0o755);
  }
  // Changed and of the same size, so that git has to look into them.
  for (const name of ['account.mjs', 'notes.txt', 'page.late', 'sub/part.mjs'])
    write(join(folder, name), 'two\n');
  const ran = (): readonly string[] => {
    const names = readdirSync(marks).toSorted();
    for (const name of names) rmSync(join(marks, name));
    return names;
  };
  ran();
  return {
    folder,
    ran,
    git: (...args) => git(folder, ...args),
    remove: () => rmSync(root, { recursive: true, force: true }),
  };
}
