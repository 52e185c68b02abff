import { execFileSync, spawn, spawnSync } from 'node:child_process';
import {
  chmodSync,
  copyFileSync,
  cpSync,
  existsSync,
  mkdtempSync,
  readFileSync,
  rmSync,
} from 'node:fs';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import { createInterface } from 'node:readline';
import { afterAll, beforeAll, describe, expect, it, onTestFinished } from 'vitest';
import { interpreters } from '../environments.ts';
import { canRun } from '../programs.ts';
import { startTarget } from '../targets/harness.ts';
import { type Ended, MAIN, parseReport, startCli } from './cli.ts';

/*
 * Rights really given up: another user, a capability dropped for good, a program that may not be dumped, another user namespace,
 * a /proc that hides. As root each is made; without root what cannot be made is skipped by name, and the rest asserted.
 */

const isRoot = process.getuid?.() === 0;
/** `nobody`: owns nothing and holds nothing. */
const NOBODY = 65_534;
const yama = existsSync('/proc/sys/kernel/yama/ptrace_scope')
  ? Number(readFileSync('/proc/sys/kernel/yama/ptrace_scope', 'utf8'))
  : 0;

/** Where everybody may read and execute: a checkout below /root is closed to others. */
const folder = mkdtempSync(join(tmpdir(), 'tracewright-permissions-'));
const dist = join(folder, 'dist');
let node = process.execPath;

beforeAll(() => {
  chmodSync(folder, 0o755);
  cpSync(join(dirname(MAIN), '..'), dist, { recursive: true });
  copyFileSync(join(import.meta.dirname, '..', '..', 'package.json'), join(folder, 'package.json'));
  copyFileSync(join(import.meta.dirname, 'judge-access.js'), join(folder, 'judge-access.js'));
  if (isRoot && spawnSync(node, ['--version'], { uid: NOBODY, gid: NOBODY }).status !== 0) {
    node = join(folder, 'node');
    copyFileSync(process.execPath, node);
  }
});
afterAll(() => rmSync(folder, { recursive: true, force: true }));

interface Access {
  readonly available: boolean;
  readonly reason?: string;
  readonly remedy?: string | null;
}
interface Judged {
  readonly target: { readonly pid: number; readonly startTicks: number };
  readonly isSame: boolean;
  readonly access: {
    readonly memory: Access;
    readonly syscall: Access;
    readonly details: Access;
    readonly stats: Access;
    readonly rule: string | null;
    readonly messages: readonly string[];
  };
  readonly runtime: { readonly name: string; readonly reason: string | null };
  /** Instead of all that, when the target was refused. */
  readonly code?: string;
  readonly remedy?: string;
}

type User = { readonly uid?: number; readonly gid?: number };
const nobody: User = isRoot ? { uid: NOBODY, gid: NOBODY } : {};

/** Judges a pid as a user, behind a command that gives up something. */
function judge(pid: number, as: User = {}, behind: readonly string[] = []): Judged {
  const [command = node, ...before]: readonly string[] = [...behind, node];
  const text = execFileSync(
    command,
    [...before, join(folder, 'judge-access.js'), dist, String(pid)],
    {
      ...as,
      cwd: folder,
      encoding: 'utf8',
    },
  );
  return JSON.parse(text) as Judged;
}

/** Runs the program to its end as nobody, from where nobody may read it. */
function asNobody(args: readonly string[]): Ended {
  const run = spawnSync(node, [join(dist, 'src', 'main.js'), ...args], {
    ...nobody,
    cwd: folder,
    env: { PATH: process.env['PATH'], HOME: folder, NO_COLOR: '1' },
    encoding: 'utf8',
  });
  return { code: run.status, signal: run.signal, stdout: run.stdout, stderr: run.stderr };
}

/** A sleeping process of a user, waited for until it is the program itself and no more the fork of ours. */
async function sleeper(as: User = {}, program = '/bin/sh'): Promise<number> {
  const child = spawn(program, program === '/bin/sh' ? ['-c', 'echo; exec sleep 60'] : ['60'], {
    ...as,
    cwd: folder,
    stdio: ['ignore', 'pipe', 'inherit'],
  });
  onTestFinished(() => void child.kill('SIGKILL'));
  const { pid } = child;
  if (pid === undefined) throw new Error(`could not start ${program}`);
  if (program === '/bin/sh')
    await new Promise((resolve) => createInterface(child.stdout).once('line', resolve));
  while (commOf(pid) !== (program === '/bin/sh' ? 'sleep' : program.split('/').at(-1)))
    await new Promise((resolve) => setTimeout(resolve, 5));
  return pid;
}

function commOf(pid: number): string {
  return readFileSync(`/proc/${pid}/comm`, 'utf8').trim();
}

/** Root here or, for who is not, root of a user namespace: holds every capability over what it starts. */
const asRoot: readonly string[] = isRoot ? [] : ['unshare', '--user', '--map-root-user'];

/** What is left without rights, by the issue: CPU, run-queue wait and growth. */
function expectDegraded({ access, runtime }: Judged): void {
  expect(access.memory.available).toBe(false);
  expect(access.syscall.available).toBe(false);
  expect(access.stats).toEqual({ available: true });
  expect(access.messages.join('\n')).toMatch(/still seen .*CPU.*run-queue wait.*memory/);
  expect(runtime).toMatchObject({ name: 'unknown', reason: expect.stringContaining('EACCES') });
}

describe('a process of another user', () => {
  // Without root, the first process of the machine is somebody else's.
  const foreign = async () => (isRoot ? sleeper() : 1);

  it('is watched from /proc alone, and it says whose it is and how to see more', async () => {
    const pid = await foreign();
    const judged = judge(pid, nobody);
    expectDegraded(judged);
    expect(judged.access.rule).toBe('other-user');
    const text = judged.access.messages.join('\n');
    expect(text).toContain(`cannot read memory of pid ${pid} (${commOf(pid)}, uid 0): EACCES`);
    expect(text).toContain('it belongs to root (uid 0)');
    // root's PATH may lack Node: the remedy has absolute paths, and can be pasted.
    expect(judged.access.memory.remedy).toBe(
      `sudo ${node} ${join(folder, 'judge-access.js')} attach ${pid}`,
    );
  });

  it('can be attached to: exit 0, the reason first, and CPU and memory in the report', async () => {
    const pid = await foreign();
    const run = asNobody(['attach', String(pid), '-d', '2', '--json', '--no-recording']);
    expect(run.stderr).toContain(`cannot read memory of pid ${pid}`);
    expect(run.code).toBe(0);
    const report = parseReport(run);
    expect(report.collectors.find(({ name }) => name === 'process')).toMatchObject({
      available: true,
    });
    const blind = report.collectors.filter(({ available }) => !available);
    expect(blind.length).toBeGreaterThan(0);
    expect(report.metrics['process.memory.usage']?.series[0]?.last).toBeGreaterThan(0);
    expect(report.metrics['process.cpu.time']).toBeDefined();
    expect(report.metrics['tracewright.thread.run_queue.wait']).toBeDefined();
    expect(report.findings).toEqual([]);
  });

  it('ends with exit 4 when stacks are required', async () => {
    const pid = await foreign();
    const run = asNobody(['attach', String(pid), '-d', '2', '--require-stacks', '--no-recording']);
    expect(run.code).toBe(4);
    expect(run.stdout).toBe('');
    expect(run.stderr).toContain('CAP_SYS_PTRACE');
  });
});

describe('a process of the same user', () => {
  it('is open without any capability, unless Yama is set', async () => {
    const judged = judge(await sleeper(nobody), nobody);
    expect(judged.access.details).toEqual({ available: true });
    expect(judged.access.rule).toBe([null, 'yama-descendants', 'yama-admin', 'yama-none'][yama]);
    expect(judged.access.memory.available).toBe(yama === 0);
    expect(judged.runtime.name).toBe('native');
  });

  it('is closed when its program may be executed but not read: it is not dumpable', async () => {
    const program = join(folder, 'unreadable');
    copyFileSync('/bin/sleep', program);
    // Root's own programs are always readable to root; to nobody this one is as to anyone.
    chmodSync(program, 0o111);
    const judged = judge(await sleeper(nobody, program), nobody);
    expectDegraded(judged);
    expect(judged.access.rule).toBe('not-dumpable');
    expect(judged.access.messages.join('\n')).toContain('not dumpable');
  });

  it.skipIf(!canRun(...asRoot, 'setpriv', '--version'))(
    'is closed to a root without CAP_SYS_PTRACE, for the capabilities it holds (needs root or user namespaces)',
    () => {
      const drop = 'setpriv --inh-caps=-sys_ptrace --bounding-set=-sys_ptrace';
      const judgement = `${drop} ${node} ${join(folder, 'judge-access.js')} ${dist}`;
      const full = judgeInShell(`sleep 60 & ${judgement} $!; kill $!`);
      expectDegraded(full);
      expect(full.access.rule).toBe('more-capabilities');
      expect(full.access.messages.join('\n')).not.toContain('sudo');
      // With the same capabilities on both sides, the same user is enough again.
      const equal = judgeInShell(
        `${drop} sleep 60 & while ! grep -q sleep /proc/$!/comm; do :; done; ${judgement} $!; kill $!`,
      );
      expect(equal.access.memory.available).toBe(yama === 0);
    },
  );

  function judgeInShell(script: string): Judged {
    const [command = 'sh', ...args]: readonly string[] = [...asRoot, 'sh', '-c', script];
    return JSON.parse(execFileSync(command, args, { cwd: folder, encoding: 'utf8' })) as Judged;
  }
});

/** What makes what follows nobody's, below a /proc that is mounted with an option. */
function hiding(option: string): readonly string[] {
  const asNobodyBelow = `mount -t proc -o ${option} proc /proc && exec setpriv --reuid=${NOBODY} --regid=${NOBODY} --clear-groups "$@"`;
  return ['unshare', '--mount', 'sh', '-c', asNobodyBelow, 'sh'];
}

describe('namespaces', () => {
  it.skipIf(!canRun('unshare', '--user', '--map-root-user', 'true'))(
    'a capability of a nested user namespace does not reach out of it (needs user namespaces)',
    async () => {
      // Root in a rootless container: every capability, and none over the machine's own processes.
      const pid = isRoot ? await sleeper() : 1;
      const judged = judge(pid, nobody, ['unshare', '--user', '--map-root-user']);
      expectDegraded(judged);
      expect(judged.access.rule).toBe('user-namespace');
      expect(judged.access.messages.join('\n')).toContain('on the host');
    },
  );

  it.skipIf(!isRoot || !canRun('unshare', '--mount', 'true'))(
    'a /proc that hides the processes of others is named when one is not found (needs root)',
    async () => {
      const pid = await sleeper();
      const judged = judge(pid, {}, hiding('hidepid=2'));
      expect(judged).toMatchObject({
        code: 'ERR_TARGET_NOT_FOUND',
        remedy: expect.stringContaining('hidepid'),
      });
    },
  );

  it.skipIf(!isRoot || !canRun('unshare', '--mount', 'true'))(
    'a /proc that lets only look at the names of others says so, and how to see more (needs root)',
    async () => {
      const pid = await sleeper();
      const judged = judge(pid, {}, hiding('hidepid=1'));
      expect(judged).toMatchObject({
        code: 'ERR_TARGET_HIDDEN',
        remedy: expect.stringMatching(/^sudo .*attach \d+ .*\n.*remount,hidepid=0/),
      });
      // The group that the mount exempts sees what it may.
      const exempt = judge(pid, {}, hiding(`hidepid=2,gid=${NOBODY}`));
      expect(exempt.access.stats).toEqual({ available: true });
      const elsewhere = judge(pid, {}, hiding('hidepid=1,gid=4711'));
      expect(elsewhere.remedy).toContain('getent group 4711');
    },
  );

  it.skipIf(!isRoot || !canRun('unshare', '--mount', 'true'))(
    'a list that is short because of hidepid says so (needs root)',
    () => {
      const [command = 'unshare', ...args]: readonly string[] = [...hiding('hidepid=2'), node];
      const run = (...rest: readonly string[]) =>
        spawnSync(command, [...args, join(dist, 'src', 'main.js'), 'attach', ...rest], {
          cwd: folder,
          encoding: 'utf8',
        });
      const list = run();
      expect(list.status).toBe(0);
      expect(list.stderr).toContain('processes of other users do not show');
      expect(run('--match', 'no such program').stderr).toContain('hidepid=invisible');
    },
  );

  const python = interpreters()[0]?.path ?? 'python3';
  const filter = join(import.meta.dirname, '..', 'targets', 'container', 'seccomp.py');
  /** `trace attach` on a server that blocks, behind a command that takes something away and within the filter. */
  const attachFiltered = async (
    behind: readonly string[] = [],
    env: Readonly<Record<string, string>> = {},
  ): Promise<Ended> => {
    const target = await startTarget('asyncio', {
      kinds: ['sleep'],
      durations: [300],
      reps: 200,
      seconds: 60,
    });
    onTestFinished(() => target.stop());
    const args = ['attach', String(target.pid), '-d', '4', '--json', '--no-recording'];
    return startCli(args, { command: [...behind, python, filter, process.execPath], env }).ended;
  };

  it.runIf(yama === 0)(
    'an attach sees all under a seccomp filter that denies ptrace, process_vm_readv and perf, as the default one of old Docker',
    async () => {
      const run = await attachFiltered();
      const report = parseReport(run);
      const seen = report.collectors.filter(({ available }) => available).map(({ name }) => name);
      expect(seen).toEqual(expect.arrayContaining(['process', 'event-loop', 'stacks']));
      const block = report.findings.find(({ kind }) => kind === 'loop-blocked');
      expect(block?.where[0]?.line, run.stderr).toBeGreaterThan(0);
      expect(run.stderr).not.toContain('cannot read');
    },
  );

  it.skipIf(!isRoot || !canRun('setpriv', '--version'))(
    'an attach in a container as Docker makes one, with that filter and without CAP_SYS_PTRACE, says what to add and sees the rest (needs root)',
    async () => {
      const drop = ['setpriv', '--inh-caps=-sys_ptrace', '--bounding-set=-sys_ptrace'];
      const run = await attachFiltered(drop, { KUBERNETES_SERVICE_HOST: '10.0.0.1' });
      expect(run.code, run.stderr).toBe(0);
      expect(run.stderr).toMatch(/cannot read memory of pid \d+ .*: EACCES/);
      expect(run.stderr).toContain('CAP_SYS_PTRACE');
      for (const remedy of [
        'docker run --cap-add=SYS_PTRACE --pid=container:NAME --rm -it IMAGE trace attach PID',
        'kubectl debug POD -it --image=IMAGE --target=CONTAINER --profile=sysadmin -- trace attach PID',
      ])
        expect(run.stderr).toContain(remedy);
      const report = parseReport(run);
      expect(report.collectors.find(({ name }) => name === 'process')?.available).toBe(true);
      expect(report.collectors.some(({ available }) => !available)).toBe(true);
      expect(report.metrics['process.memory.usage']?.series[0]?.last).toBeGreaterThan(0);
      expect(report.metrics['process.cpu.time']).toBeDefined();
      expect(report.findings).toEqual([]);
    },
  );

  it.skipIf(!canRun('unshare', ...asRoot.slice(1), '--pid', '--fork', 'true'))(
    'shows the pid that a process has in its own container (needs root or user namespaces)',
    async () => {
      const unshare = [...asRoot.slice(1), '--pid', '--fork', '--kill-child'];
      const child = spawn('unshare', [...unshare, 'sh', '-c', 'echo; exec sleep 60'], {
        stdio: ['ignore', 'pipe', 'inherit'],
      });
      onTestFinished(() => void child.kill('SIGKILL'));
      await new Promise((resolve) => createInterface(child.stdout).once('line', resolve));
      const inner = Number(readFileSync(`/proc/${child.pid}/task/${child.pid}/children`, 'utf8'));
      const { findTarget } = await import('../../src/platform/target.ts');
      expect(findTarget({ pid: inner })).toMatchObject({
        namespacePid: 1,
        container: expect.any(String),
      });
    },
  );
});

describe('a pid that was given to another process', () => {
  const ownPids = [
    'unshare',
    ...asRoot.slice(1),
    '--pid',
    '--fork',
    '--kill-child',
    '--mount-proc',
  ];
  it.skipIf(!canRun(...ownPids, 'true'))(
    'is not taken for the one it belonged to, by path or by kept file (needs root or user namespaces)',
    () => {
      // In a pid namespace of its own, the next pid can be chosen: the second sleep gets the pid of the first.
      const script = `
        sleep 60 & first=$!
        ${node} ${join(folder, 'reused-pid.js')} ${dist} $first &
        watcher=$!
        while ! [ -e ${folder}/watching ]; do sleep 0.01; done
        kill -9 $first; wait $first 2>/dev/null
        # The clock tick of the start time is 10 ms: two processes must not share it.
        sleep 0.05
        sh -c 'echo $(($1 - 1)) > /proc/sys/kernel/ns_last_pid; exec sleep 60 & echo $! > $2/second' sh $first ${folder}
        touch ${folder}/reused
        wait $watcher`;
      copyFileSync(join(import.meta.dirname, 'reused-pid.js'), join(folder, 'reused-pid.js'));
      const [command = 'unshare', ...args]: readonly string[] = [...ownPids, 'sh', '-c', script];
      const out = execFileSync(command, args, { encoding: 'utf8' });
      expect(JSON.parse(out)).toEqual({
        samePid: true,
        isSame: false,
        keptFile: -1,
        observed: ['event', 'gap'],
      });
    },
  );
});
