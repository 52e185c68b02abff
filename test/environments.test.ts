import { execFileSync } from 'node:child_process';
import { existsSync } from 'node:fs';
import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { interpreters, pythonEnvironment } from './environments.ts';

const version = (python: string): string =>
  execFileSync(python, ['-c', 'import platform;print(platform.python_version())'], {
    encoding: 'utf8',
  }).trim();

describe('pythonEnvironment', () => {
  let cache: string;
  const kept = process.env['XDG_CACHE_HOME'];
  beforeEach(async () => {
    cache = await mkdtemp(join(tmpdir(), 'tracewright-cache-'));
    process.env['XDG_CACHE_HOME'] = cache;
  });
  afterEach(async () => {
    if (kept === undefined) delete process.env['XDG_CACHE_HOME'];
    else process.env['XDG_CACHE_HOME'] = kept;
    await rm(cache, { recursive: true, force: true });
  });

  it('is made once when several ask at the same time, and made anew when half of it is missing', async () => {
    const [one, two] = await Promise.all([pythonEnvironment([]), pythonEnvironment([])]);
    expect(one).toEqual(two);
    expect(version(one.python)).toBe(interpreters()[0]?.version);

    const marker = join(one.bin, '..', 'complete');
    await rm(marker);
    await rm(one.python);
    await pythonEnvironment([]);
    expect(existsSync(marker)).toBe(true);
    expect(version(one.python)).toBe(interpreters()[0]?.version);
  });

  it('refuses a package that has no pin', async () => {
    await expect(pythonEnvironment(['left-pad'])).rejects.toThrow('no pin for left-pad');
  });
});

describe('interpreters', () => {
  const kept = process.env['TRACEWRIGHT_PYTHONS'];
  afterEach(() => {
    if (kept === undefined) delete process.env['TRACEWRIGHT_PYTHONS'];
    else process.env['TRACEWRIGHT_PYTHONS'] = kept;
  });

  it('fails for a version that is not installed instead of leaving it out', () => {
    process.env['TRACEWRIGHT_PYTHONS'] = '2.99';
    expect(() => interpreters()).toThrow('asks for 2.99, which is not here');
  });

  it('takes paths', () => {
    delete process.env['TRACEWRIGHT_PYTHONS'];
    const first = interpreters()[0];
    process.env['TRACEWRIGHT_PYTHONS'] = first?.path;
    expect(interpreters()).toEqual([first]);
  });
});
