import { spawn } from 'node:child_process';
import { mkdtempSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { basename, dirname, join } from 'node:path';
import { createInterface } from 'node:readline';
import { interpreters, pythonEnvironment } from '../environments.ts';
import { canRun } from '../programs.ts';

/** Programs in namespaces of their own, with a root in which nothing is named as it is outside: what a container is to the kernel. */

export const FOLDER: string = join(import.meta.dirname, '..', 'targets', 'container');
/** Where they find their files; nobody else has these names. */
export const APP = '/tracewright-app';
export const RUNTIME = '/tracewright-runtime';
const PACKAGES = '/tracewright-packages';

const isRoot = process.getuid?.() === 0;
/** Without root, one makes oneself root of a user namespace. */
const asRoot: readonly string[] = isRoot ? [] : ['--user', '--map-root-user'];
const OWN_NAMESPACES: readonly string[] = ['--mount', '--pid', '--fork', '--kill-child'];

/** Whether namespaces can be made here at all, and with a user namespace among them. */
export const canContain: boolean = canRun('unshare', ...asRoot, ...OWN_NAMESPACES, 'true');
export const canContainUser: boolean = canRun(
  'unshare',
  '--user',
  '--map-root-user',
  ...OWN_NAMESPACES,
  '--net',
  'true',
);

export interface Contained {
  /** Ends it and all in it. */
  stop(): Promise<void>;
  /** As it is known here. */
  readonly pid: number;
  /** What it said of itself: its pid and the port it listens on, both inside. */
  readonly said: { readonly pid: number; readonly port: number };
}

export interface ContainerOptions {
  /** User and network namespaces of its own, too. */
  readonly isolated: boolean;
  /** How it gets its root: another root of its mount namespace, or within that of the mount namespace. */
  readonly root: 'pivot' | 'chroot';
}

/** A program of `test/targets/container`, by the interpreter's files under another name. */
export async function startContained(
  program: readonly [file: string, ...args: string[]],
  { isolated, root: how }: ContainerOptions,
): Promise<Contained> {
  const root = mkdtempSync(join(tmpdir(), 'tracewright-root-'));
  const { prefix, packages, command } = await runtimeOf(program[0]);
  const [file, ...args] = program;
  const child = spawn(
    'unshare',
    [
      ...(isolated ? ['--user', '--map-root-user', '--net'] : asRoot),
      ...OWN_NAMESPACES,
      'sh',
      join(FOLDER, 'enter.sh'),
      root,
      how,
      prefix,
      packages,
      ...command,
      join(APP, file),
      ...args,
    ],
    { stdio: ['ignore', 'pipe', 'pipe'] },
  );
  const ended = new Promise((resolve) => child.once('close', resolve));
  const stop = async (): Promise<void> => {
    child.kill('SIGKILL');
    await ended;
    rmSync(root, { recursive: true, force: true });
  };
  let errors = '';
  child.stderr.setEncoding('utf8').on('data', (text: string) => (errors += text));
  const line = await new Promise<string>((resolve, reject) => {
    createInterface(child.stdout)
      .once('line', resolve)
      .once('close', () => reject(new Error(`the container ended: ${errors}`)));
    child.once('error', reject);
  }).catch(async (error: unknown) => {
    await stop();
    throw error;
  });
  const [, inner, port] = line.split(' ').map(Number);
  const pid = Number(readFileSync(`/proc/${child.pid}/task/${child.pid}/children`, 'utf8'));
  if (inner === undefined || port === undefined || !(pid > 0))
    throw new Error(`not understood: ${line}`);
  return { pid, said: { pid: inner, port }, stop };
}

async function runtimeOf(file: string): Promise<{
  readonly prefix: string;
  readonly packages: string;
  readonly command: readonly string[];
}> {
  if (file.endsWith('.js')) {
    const prefix = dirname(dirname(process.execPath));
    return { prefix, packages: prefix, command: [`${RUNTIME}/bin/${basename(process.execPath)}`] };
  }
  const [interpreter] = interpreters();
  if (interpreter === undefined) throw new Error('no Python interpreter');
  const prefix = dirname(dirname(interpreter.path));
  const { bin } = await pythonEnvironment(['uvloop'], interpreter.path);
  const library = `python${interpreter.version.split('.').slice(0, 2).join('.')}`;
  return {
    prefix,
    packages: join(dirname(bin), 'lib', library, 'site-packages'),
    command: [
      'env',
      `LD_LIBRARY_PATH=${RUNTIME}/lib`,
      `PYTHONHOME=${RUNTIME}`,
      `PYTHONPATH=${PACKAGES}`,
      `${RUNTIME}/bin/${basename(interpreter.path)}`,
    ],
  };
}
