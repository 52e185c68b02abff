import { execFileSync } from 'node:child_process';
import { describe, expect, it } from 'vitest';
import { canRun, FULL, install, program } from './programs.ts';

/** Root, or allowed to make namespaces: what the cached programs are run in. */
const canMount =
  canRun('unshare', '--mount', 'true') || canRun('unshare', '--user', '--mount', 'true');

describe('a program that tests need', () => {
  it('is taken from the PATH where it is there', async () => {
    const path = process.env['PATH'];
    process.env['PATH'] = '/usr/bin:/bin';
    try {
      const bash = await program('bash');
      expect(bash.isWanted).toBe(true);
      expect(bash.path()).toMatch(/\/bash$/);
    } finally {
      process.env['PATH'] = path;
    }
  });

  it.runIf(!FULL)('is left out by name where it is not, and says so to who asks', async () => {
    const path = process.env['PATH'];
    process.env['PATH'] = '/nonexistent';
    try {
      const zsh = await program('zsh');
      expect(zsh.isWanted).toBe(false);
      expect(() => zsh.path()).toThrow('zsh is needed and not here: it is not on the PATH');
    } finally {
      process.env['PATH'] = path;
    }
  });

  it.runIf(FULL && canMount)(
    'is unpacked into the cache in a full run, with the modules it loads (needs mount namespaces)',
    async () => {
      const zsh = await install('zsh');
      const asked = execFileSync(zsh, ['-f', '-c', 'zmodload zsh/zpty && print $ZSH_VERSION']);
      expect(asked.toString()).toBe('5.9\n');
      const fish = execFileSync(await install('fish'), ['--no-config', '-c', 'echo $version']);
      expect(fish.toString()).toBe('3.6.0\n');
    },
    300_000,
  );
});
