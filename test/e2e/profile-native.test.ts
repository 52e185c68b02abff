import { execFileSync } from 'node:child_process';
import { mkdtempSync, readFileSync, rmSync, symlinkSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import { Ajv2020 } from 'ajv/dist/2020.js';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { interpreters, pythonEnvironment } from '../environments.ts';
import { program } from '../programs.ts';
import { startReady, type Running } from '../targets/harness.ts';
import { runCli } from './cli.ts';

/*
 * Truth for native frames: a thread that is in OpenSSL's key derivation nearly all the time, one that is in libc's sleep, and the twin of
 * the first that computes in Python. Both tools, where this machine lets them attach.
 */

const TARGET = join(import.meta.dirname, '..', 'targets', 'python', 'native_block.py');
const python = interpreters()[0]?.path ?? 'python3';
const schema = JSON.parse(
  readFileSync(join(import.meta.dirname, '../../docs/schema/profile.schema.json'), 'utf8'),
) as object;
const validate = new Ajv2020({ formats: { 'date-time': true } }).compile(schema);
const bare = mkdtempSync(join(tmpdir(), 'tracewright-native-'));
/** For trace itself. */
symlinkSync(process.execPath, join(bare, 'node'));

interface Document {
  readonly native: {
    readonly tool: string;
    readonly looks: number;
    readonly paused_s: number;
    readonly longest_pause_s: number;
  };
  readonly stacks: readonly {
    readonly thread: number;
    readonly samples: number;
    readonly frames: readonly { function: string; file: string; native?: true }[];
  }[];
  readonly threads: readonly { readonly name: string }[];
  readonly overhead: { readonly target_paused_s: number };
}

const statesOf = (pid: number): string =>
  execFileSync('sh', ['-c', `grep -h State: /proc/${pid}/task/*/status`]).toString();

afterAll(() => rmSync(bare, { recursive: true, force: true }));

describe('trace profile --native', () => {
  let native: Running;
  let twin: Running;
  beforeAll(async () => {
    native = await startReady(python, [TARGET, 'native']);
    twin = await startReady(python, [TARGET, 'python']);
  });
  afterAll(async () => {
    await native.stop();
    await twin.stop();
  });

  it('is refused with what to install where no tool is there', async () => {
    const args = ['profile', String(native.pid), '--native'];
    const none = await runCli(args, { env: { PATH: bare } });
    expect(none.code).toBe(5);
    expect(none.stderr).toContain('neither eu-stack nor py-spy is on the PATH');
    expect(none.stderr).toContain('elfutils');
    const other = await runCli(['profile', String(process.pid), '--native=py-spy'], {
      env: { PATH: bare },
    });
    expect([other.code, other.stderr]).toEqual([5, expect.stringContaining('Python only')]);
  });

  it.for(['eu-stack', 'py-spy'] as const)(
    'names the native function and its Python caller by %s, prints the pause, and lets go',
    async (tool, { skip }) => {
      const path = await pathOf(tool);
      if (path === null) return skip(`${tool} is not installed`);
      if (!mayAttach(tool, path, native.pid)) return skip(`${tool} may not attach here`);
      const env = { PATH: `${dirname(path)}:${process.env['PATH']}` };
      const look = async (pid: number, mode: string): Promise<Document> => {
        const rest = ['-m', mode, '-d', '1.5', '-r', '5', '--max-pause', '5s', '--json'];
        const ended = await runCli(['profile', String(pid), `--native=${tool}`, ...rest], { env });
        expect(ended.code, ended.stderr).toBe(0);
        const document = JSON.parse(ended.stdout) as Document;
        expect(validate(document), JSON.stringify(validate.errors)).toBe(true);
        return document;
      };
      const [wall, healthy] = await Promise.all([look(native.pid, 'wall'), look(twin.pid, 'cpu')]);
      const of = (document: Document, name: string): Document['stacks'] =>
        document.stacks.filter(({ thread }) => document.threads[thread]?.name === name);
      const worker = of(wall, 'worker').flatMap(({ frames }) => frames);
      expect(worker).toContainEqual(expect.objectContaining({ function: 'derive', file: TARGET }));
      expect(worker).toContainEqual(
        expect.objectContaining({ native: true, function: expect.stringMatching(/pbkdf2/i) }),
      );
      const sleeper = of(wall, 'sleeper').map(({ frames }) => frames.map((one) => one.function));
      expect(sleeper.some((names) => names.includes('usleep'))).toBe(true);
      for (const names of sleeper)
        if (names.includes('sleep_in_libc'))
          expect(names.indexOf('usleep')).toBeLessThan(names.indexOf('sleep_in_libc'));
      expect(wall.native.tool).toBe(tool);
      expect(wall.native.looks).toBeGreaterThan(0);
      expect(wall.native.paused_s).toBeGreaterThan(0);
      expect(wall.native.longest_pause_s).toBeLessThanOrEqual(wall.native.paused_s);
      expect(wall.overhead.target_paused_s).toBe(wall.native.paused_s);
      const functions = of(healthy, 'worker').flatMap(({ frames }) =>
        frames.map((one) => one.function),
      );
      expect(functions.filter((name) => /pbkdf2/i.test(name))).toEqual([]);
      for (const { pid } of [native, twin]) expect(statesOf(pid)).not.toMatch(/[Tt] \(/);
    },
  );
});

async function pathOf(tool: 'eu-stack' | 'py-spy'): Promise<string | null> {
  if (tool === 'py-spy') return join((await pythonEnvironment(['py-spy'])).bin, 'py-spy');
  const found = await program('eu-stack');
  return found.isWanted ? found.path() : null;
}

function mayAttach(tool: string, path: string, pid: number): boolean {
  const args = tool === 'py-spy' ? ['dump', '--native', '--pid'] : ['-p'];
  try {
    execFileSync(path, [...args, String(pid)], { stdio: 'ignore' });
    return true;
  } catch (error) {
    // eu-stack ends with 1 where a part could not be read.
    return tool === 'eu-stack' && (error as { status?: number }).status === 1;
  }
}
