import { execFile } from 'node:child_process';
import { mkdtemp, readdir, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import manifest from '../../package.json' with { type: 'json' };
import { startTarget } from '../targets/harness.ts';

/* What `npm publish` would publish, installed in an empty folder as anybody would. */

const run = promisify(execFile);
const ROOT = join(import.meta.dirname, '..', '..');
const { version } = manifest;
const NPX = ['--no-install', '--offline'];

describe('the package', () => {
  let folder: string;
  beforeAll(async () => {
    folder = await mkdtemp(join(tmpdir(), 'tracewright-package-'));
    // dist/ was built for this run already (vitest's global setup); prepack would build it under the feet of other tests.
    await run('npm', ['pack', '--ignore-scripts', '--pack-destination', folder], { cwd: ROOT });
    await run('npm', ['init', '-y'], { cwd: folder });
    await run('npm', ['install', '--no-audit', '--no-fund', `./tracewright-${version}.tgz`], {
      cwd: folder,
    });
  });
  afterAll(() => rm(folder, { recursive: true, force: true }));

  const npx = (args: readonly string[]): Promise<{ stdout: string; code: number }> =>
    run('npx', [...NPX, ...args], { cwd: folder }).then(
      ({ stdout }) => ({ stdout, code: 0 }),
      (error: { stdout: string; code: number }) => ({ stdout: error.stdout, code: error.code }),
    );

  it.each(['trace', 'tracewright'])('runs as %s', async (name) => {
    expect((await npx([name, '--version'])).stdout).toBe(`trace ${version}\n`);
  });

  it('attaches, finds the function that blocks and leaves a recording', async () => {
    const target = await startTarget('asyncio', {
      kinds: ['sleep'],
      durations: [300],
      reps: 200,
      startS: 0.2,
      seconds: 60,
    });
    try {
      const { stdout, code } = await npx(['trace', 'attach', String(target.pid), '-d', '3']);
      expect(stdout).toContain('blocking_sleep');
      expect(code).toBe(1);
      expect(await readdir(join(folder, '.tracewright'))).toHaveLength(1);
    } finally {
      await target.stop();
    }
  });

  it('holds what it needs and no tests', async () => {
    const installed = join(folder, 'node_modules', 'tracewright');
    const top = await readdir(installed);
    expect(top).toContain('dist');
    expect(
      top.filter((name) =>
        ['src', 'test', 'demo', 'scripts', 'build', 'node_modules', '.ci'].includes(name),
      ),
    ).toEqual([]);
    expect(await readdir(join(installed, 'dist'))).not.toContain('test');
  });
});
