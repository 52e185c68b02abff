import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { closeSync, openSync } from 'node:fs';
import { join } from 'node:path';
import { describe, expect, it } from 'vitest';

const MAIN = join(import.meta.dirname, '..', 'dist', 'src', 'main.js');

interface Ended {
  readonly code: number | null;
  readonly out: string;
  readonly err: string;
}

/** Runs the built program; `readOut: false` closes its stdout before it can write. */
async function trace(args: readonly string[], readOut = true): Promise<Ended> {
  const child = spawn(process.execPath, [MAIN, ...args], { stdio: ['ignore', 'pipe', 'pipe'] });
  let out = '';
  let err = '';
  if (readOut) child.stdout.on('data', (chunk: Buffer) => (out += chunk.toString()));
  else child.stdout.destroy();
  child.stderr.on('data', (chunk: Buffer) => (err += chunk.toString()));
  const [code] = (await once(child, 'close')) as [number | null];
  return { code, out, err };
}

describe('the built program', () => {
  it('prints its help and version', async () => {
    expect(await trace(['--help'])).toMatchObject({ code: 0, err: '' });
    expect(await trace(['--version'])).toMatchObject({
      code: 0,
      out: expect.stringMatching(/^trace \d+\.\d+\.\d+\n$/) as string,
    });
  });

  it('sets the exit code of a mistake', async () => {
    const { code, out, err } = await trace(['attach', '--durration', '1']);
    expect({ code, out }).toEqual({ code: 2, out: '' });
    expect(err).toContain('Did you mean --duration?');
  });

  it('ends quietly when nobody reads its output any more', async () => {
    expect(await trace(['--help'], false)).toEqual({ code: 0, out: '', err: '' });
  });

  it('does not pass off half a result as a whole one', async () => {
    const full = openSync('/dev/full', 'w');
    const child = spawn(process.execPath, [MAIN, '--help'], { stdio: ['ignore', full, 'pipe'] });
    let err = '';
    child.stderr?.on('data', (chunk: Buffer) => (err += chunk.toString()));
    const [code] = (await once(child, 'close')) as [number | null];
    closeSync(full);
    expect(code).toBe(6);
    expect(err).toMatch(/^trace: the result could not be written: ENOSPC/);
  });

  /** Our modules that `trace <verb> --help` loads. */
  async function loadedFor(verb: string): Promise<readonly string[]> {
    const child = spawn(process.execPath, [MAIN, verb, '--help'], {
      env: { ...process.env, NODE_DEBUG: 'esm' },
      stdio: ['ignore', 'ignore', 'pipe'],
    });
    let log = '';
    child.stderr.on('data', (chunk: Buffer) => (log += chunk.toString()));
    await once(child, 'close');
    const loaded = [...log.matchAll(/dist\/((?:src|collectors)\/[\w/-]+)\.js/g)].map(
      ([, m = '']) => m,
    );
    return [...new Set(loaded)].sort((a, b) => a.localeCompare(b));
  }

  it('loads nothing for the help of attach but what the help needs', async () => {
    expect(await loadedFor('attach')).toMatchInlineSnapshot(`
      [
        "src/cli",
        "src/commands/attach/help",
        "src/commands/attach/options",
        "src/commands/command-line/command",
        "src/commands/command-line/environment",
        "src/commands/command-line/nearest",
        "src/commands/command-line/own-process",
        "src/commands/command-line/parse",
        "src/commands/flight/trigger-options",
        "src/commands/flight/trigger-parse",
        "src/commands/registry",
        "src/commands/server/options",
        "src/core/comparison",
        "src/core/duration",
        "src/core/errors",
        "src/core/exit-code",
        "src/core/pid",
        "src/core/semconv",
        "src/core/semconv-cgroup",
        "src/core/semconv-gpu",
        "src/core/semconv-server",
        "src/core/text",
        "src/main",
        "src/platform/own-signals",
      ]
    `);
  });

  it('loads nothing for the help of load but what the help needs', async () => {
    expect(await loadedFor('load')).toMatchInlineSnapshot(`
      [
        "src/cli",
        "src/commands/command-line/command",
        "src/commands/command-line/environment",
        "src/commands/command-line/own-process",
        "src/commands/load/apis",
        "src/commands/load/help",
        "src/commands/load/peer-flags",
        "src/commands/load/usage",
        "src/commands/registry",
        "src/core/errors",
        "src/core/exit-code",
        "src/core/text",
        "src/main",
        "src/platform/own-signals",
      ]
    `);
  });
});
