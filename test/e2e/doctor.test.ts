import { spawn, spawnSync } from 'node:child_process';
import {
  chmodSync,
  copyFileSync,
  cpSync,
  existsSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  rmdirSync,
  rmSync,
  statSync,
  symlinkSync,
  writeFileSync,
} from 'node:fs';
import { createServer, type AddressInfo } from 'node:net';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import { Ajv2020 } from 'ajv/dist/2020.js';
import { afterAll, beforeAll, describe, expect, it, onTestFinished } from 'vitest';
import { start, until } from '../platform/processes.ts';
import { canRun, program } from '../programs.ts';
import { MAIN } from './cli.ts';

/*
 * The built program where rights are really given up: another user, a capability dropped, namespaces, a /proc that hides, Yama by its
 * sysctl where the machine has one that may be set. What cannot be made without root is skipped by name; for a missing program see
 * test/programs.ts.
 */

const isRoot = process.getuid?.() === 0;
const [sudo, strace] = await Promise.all([program('sudo'), program('strace')]);
const NOBODY = 65_534;
const YAMA = '/proc/sys/kernel/yama/ptrace_scope';

/** Where everybody may read and execute; the name has to be quoted by a shell. */
const folder = mkdtempSync(join(tmpdir(), 'tracewright doctor-'));
const main = join(folder, 'dist', 'src', 'main.js');
let node = process.execPath;

beforeAll(() => {
  chmodSync(folder, 0o755);
  cpSync(join(dirname(MAIN), '..'), join(folder, 'dist'), { recursive: true });
  const root = join(import.meta.dirname, '..', '..');
  copyFileSync(join(root, 'package.json'), join(folder, 'package.json'));
  symlinkSync(join(root, 'node_modules'), join(folder, 'node_modules'));
  if (isRoot && spawnSync(node, ['--version'], { uid: NOBODY, gid: NOBODY }).status !== 0) {
    node = join(folder, 'node');
    copyFileSync(process.execPath, node);
  }
});
afterAll(() => rmSync(folder, { recursive: true, force: true }));

interface Check {
  readonly name: string;
  readonly status: string;
  readonly detail: string;
  readonly remedy: string | null;
}
interface Answer {
  readonly code: number | null;
  readonly stderr: string;
  readonly pid: number | null;
  readonly checks: Readonly<Record<string, Check>>;
}
interface How {
  readonly uid?: number;
  readonly gid?: number;
  /** What gives up something and then runs what follows. */
  readonly behind?: readonly string[];
  readonly env?: Readonly<Record<string, string>>;
}

const schema = JSON.parse(
  readFileSync(join(import.meta.dirname, '../../docs/schema/doctor.schema.json'), 'utf8'),
) as object;
const validate = new Ajv2020({ strict: true, allowUnionTypes: true }).compile(schema);

/** `trace doctor --json` under some restriction; every document is held against the schema. */
function doctor(args: readonly (string | number)[], { behind = [], env, ...as }: How = {}): Answer {
  const [command = node, ...before]: readonly string[] = [...behind, node];
  const run = spawnSync(command, [...before, main, 'doctor', ...args.map(String), '--json'], {
    ...as,
    cwd: folder,
    env: { PATH: '/usr/sbin:/usr/bin:/sbin:/bin', HOME: folder, ...env },
    encoding: 'utf8',
  });
  if (run.status !== 0) return { code: run.status, stderr: run.stderr, pid: null, checks: {} };
  const document = JSON.parse(run.stdout) as { pid: number | null; checks: readonly Check[] };
  expect(validate(document) ? [] : validate.errors).toEqual([]);
  const checks = Object.fromEntries(document.checks.map((check) => [check.name, check]));
  expect(Object.keys(checks)).toHaveLength(document.checks.length);
  return { code: 0, stderr: run.stderr, pid: document.pid, checks };
}

/**
 * A cgroup with half a core and 512 MiB, version 2 or 1: the files by which a process enters it; null where none can be made.
 */
function limitedGroup(): readonly string[] | null {
  const name = `tracewright-doctor-${process.pid}`;
  const groups: Record<string, Record<string, string>> = existsSync(
    '/sys/fs/cgroup/cgroup.controllers',
  )
    ? { [`/sys/fs/cgroup/${name}`]: { 'cpu.max': '50000 100000', 'memory.max': '536870912' } }
    : {
        [`/sys/fs/cgroup/cpu/${name}`]: { 'cpu.cfs_quota_us': '50000' },
        [`/sys/fs/cgroup/memory/${name}`]: { 'memory.limit_in_bytes': '536870912' },
      };
  try {
    for (const [group, limits] of Object.entries(groups)) {
      mkdirSync(group, { recursive: true });
      for (const [file, value] of Object.entries(limits)) writeFileSync(join(group, file), value);
    }
    return Object.keys(groups).map((group) => join(group, 'cgroup.procs'));
  } catch {
    removeGroups(Object.keys(groups));
    return null;
  }
}

function removeGroups(groups: readonly string[]): void {
  for (const group of groups) if (existsSync(group)) rmdirSync(group);
}

/** Tried once when tests are collected, and taken back at once. */
function canLimit(): boolean {
  const files = limitedGroup();
  removeGroups((files ?? []).map((path) => dirname(path)));
  return files !== null;
}

const nobody: How = isRoot ? { uid: NOBODY, gid: NOBODY } : {};
/** Root here or, for who is not, root of a user namespace. */
const asRoot: readonly string[] = isRoot ? [] : ['unshare', '--user', '--map-root-user'];
/** A process of somebody else: ours as root, else the first of the machine. */
const foreign = async (): Promise<number> =>
  isRoot ? (await start('/bin/sh', ['-c', 'echo; exec sleep 60'])).pid : 1;

describe('trace doctor, of the machine', () => {
  it('says what works, exits 0, and gives a remedy where something is missing', () => {
    const { code, pid, checks, stderr } = doctor([]);
    expect({ code, pid, stderr }).toEqual({ code: 0, pid: null, stderr: '' });
    expect(checks['user']?.detail).toContain(`uid ${process.getuid?.()}`);
    for (const check of Object.values(checks))
      if (check.status !== 'ok') expect(check.remedy, check.name).not.toBeNull();
  });

  it('names user and capabilities of somebody who has none', () => {
    const { checks } = doctor([], nobody);
    expect(checks['user']?.status).toBe('ok');
    expect(checks['capabilities']?.status).toBe('limited');
    expect(checks['capabilities']?.remedy).toContain(
      `sudo ${node.includes(' ') ? "'" : ''}${node}`,
    );
    expect(checks['capabilities']?.remedy).toContain(`'${main}' doctor`);
  });

  it.skipIf(!canRun(...asRoot, 'setpriv', '--version'))(
    'sees that CAP_SYS_PTRACE was dropped for good, and which are left (needs root or user namespaces)',
    () => {
      const behind = [...asRoot, 'setpriv', '--inh-caps=-sys_ptrace', '--bounding-set=-sys_ptrace'];
      const { capabilities } = doctor([], { behind }).checks;
      expect(capabilities?.status).toBe('limited');
      expect(capabilities?.detail).toMatch(/is not held.*all but .*SYS_PTRACE/);
      expect(capabilities?.remedy).not.toContain('sudo');
    },
  );

  it.skipIf(!canRun('unshare', '--user', '--map-root-user', 'true'))(
    'does not take root of a user namespace for root (needs user namespaces)',
    () => {
      const behind = ['unshare', '--user', '--map-root-user'];
      const { checks } = doctor([], { ...nobody, behind });
      expect(checks['user']?.detail).toContain('uid 0');
      expect(checks['capabilities']).toMatchObject({
        status: 'limited',
        detail: expect.stringContaining('user namespace'),
      });
    },
  );

  it.skipIf(!canRun('unshare', ...asRoot.slice(1), '--pid', '--fork', '--mount-proc', 'true'))(
    'knows a container by its pid namespace (needs root or user namespaces)',
    () => {
      const behind = ['unshare', ...asRoot.slice(1), '--pid', '--fork', '--mount-proc'];
      const { container } = doctor([], { behind }).checks;
      expect(container).toMatchObject({
        status: 'limited',
        detail: expect.stringContaining('pid namespace'),
      });
    },
  );

  it('knows a pod by its environment', () => {
    const { container } = doctor([], { env: { KUBERNETES_SERVICE_HOST: '10.0.0.1' } }).checks;
    expect(container?.detail).toContain('KUBERNETES_SERVICE_HOST');
    expect(container?.remedy).toContain('kubectl debug');
  });

  it.skipIf(!isRoot || !canRun('unshare', '--mount', 'true'))(
    'notices a /proc that hides the processes of others (needs root)',
    () => {
      const hide = `mount -t proc -o hidepid=2 proc /proc && exec setpriv --reuid=${NOBODY} --regid=${NOBODY} --clear-groups "$@"`;
      const { hidepid } = doctor([], {
        behind: ['unshare', '--mount', 'sh', '-c', hide, 'sh'],
      }).checks;
      expect(hidepid?.status).toBe('limited');
      expect(hidepid?.remedy).toContain('sudo mount -o remount,hidepid=0 /proc');
    },
  );

  it.skipIf(!isRoot || !existsSync(YAMA))(
    'reads Yama as the real sysctl is set (needs root and a kernel with Yama; else by rule table in test/commands)',
    () => {
      const before = readFileSync(YAMA, 'utf8');
      // Scope 3 could not be taken back.
      if (before.trim() === '3') return;
      onTestFinished(() => writeFileSync(YAMA, before));
      for (const [scope, status] of [
        ['0', 'ok'],
        ['1', 'limited'],
        ['2', 'limited'],
      ] as const) {
        writeFileSync(YAMA, scope);
        expect(doctor([], nobody).checks['yama']).toMatchObject({
          status,
          detail: expect.stringContaining(`ptrace_scope = ${scope}`),
        });
      }
    },
  );

  it.skipIf(!canLimit())(
    'knows the limits of its own cgroup (needs root and cgroups that may be made)',
    () => {
      const files = limitedGroup() ?? [];
      onTestFinished(() => removeGroups(files.map((path) => dirname(path))));
      const enter = files.map((path) => `echo $$ > '${path}'`).join(' && ');
      const { checks } = doctor([], { behind: ['sh', '-c', `${enter} && exec "$@"`, 'sh'] });
      expect(checks['cpu-limit']).toMatchObject({
        status: 'limited',
        detail: expect.stringContaining('0.5 cores by cgroup'),
        remedy: expect.stringContaining('--cpus=1'),
      });
      expect(checks['memory-limit']).toMatchObject({ status: 'ok', detail: '512 MiB by cgroup' });
    },
  );

  it('asks nvidia-smi, and does not wait for one that hangs', () => {
    const bin = join(folder, 'bin');
    mkdirSync(bin, { recursive: true });
    const fake = join(bin, 'nvidia-smi');
    const env = { PATH: `${bin}:/usr/bin:/bin` };
    writeFileSync(fake, '#!/bin/sh\necho "NVIDIA H100, 550.54"\n', { mode: 0o755 });
    expect(doctor([], { env }).checks['nvidia-smi']).toMatchObject({
      status: 'ok',
      detail: expect.stringContaining('1 GPUs (NVIDIA H100, 550.54)'),
    });
    writeFileSync(fake, '#!/bin/sh\nexec sleep 60\n');
    expect(doctor([], { env }).checks['nvidia-smi']).toMatchObject({
      status: 'limited',
      detail: expect.stringContaining('did not answer in 2 s and was killed'),
    });
    writeFileSync(fake, '#!/bin/sh\necho "driver mismatch"; exit 18\n');
    expect(doctor([], { env }).checks['nvidia-smi']?.detail).toContain(
      'ended with 18: driver mismatch',
    );
  });

  it('tries the OTLP endpoint once, and never prints its password', async () => {
    const server = createServer();
    await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
    const { port } = server.address() as AddressInfo;
    const env = { OTEL_EXPORTER_OTLP_ENDPOINT: `http://me:secret@127.0.0.1:${port}` };
    // The kernel takes the connection for the server, which this waiting process keeps from running.
    expect(doctor([], { env }).checks['otlp']).toMatchObject({ status: 'ok' });
    const grpc = { ...env, OTEL_EXPORTER_OTLP_PROTOCOL: 'grpc' };
    expect(doctor([], { env: grpc }).checks['otlp']).toMatchObject({
      status: 'ok',
      detail: `http://127.0.0.1:${port} (grpc) takes connections (what it does with data was not tried)`,
    });
    const withPath = {
      ...grpc,
      OTEL_EXPORTER_OTLP_TRACES_ENDPOINT: `${env.OTEL_EXPORTER_OTLP_ENDPOINT}/v1/traces`,
    };
    expect(doctor([], { env: withPath }).checks['otlp']).toMatchObject({
      status: 'limited',
      detail: expect.stringContaining('has a path, which gRPC does not use') as string,
    });
    await new Promise((resolve) => server.close(resolve));
    const { otlp } = doctor([], { env }).checks;
    expect(otlp).toMatchObject({
      status: 'limited',
      detail: expect.stringContaining('ECONNREFUSED'),
    });
    expect(JSON.stringify(otlp)).not.toContain('secret');
    const wrong = doctor([], { env: { OTEL_EXPORTER_OTLP_ENDPOINT: 'localhost:4318' } });
    expect(wrong.checks['otlp']?.status).toBe('limited');
  });
});

describe('trace doctor, of a process', () => {
  const idle = "console.log(''); setInterval(() => {}, 1e3)";

  it('says what attach would see of a Node process, and whether an inspector is open', async () => {
    const closed = doctor([
      (await start(process.execPath, ['--inspect-port=0', '-e', idle])).pid,
    ]).checks;
    expect(closed['target-runtime']?.detail).toContain(`node ${process.versions.node}`);
    expect(closed['target-inspector']).toMatchObject({
      status: 'limited',
      remedy: expect.stringContaining('--inspect'),
    });
    if (closed['target-memory']?.status === 'ok')
      expect(closed['target-loop']?.detail).toContain('libuv in thread');
    const open = doctor([(await start(process.execPath, ['--inspect=0', '-e', idle])).pid]).checks;
    expect(open['target-inspector']).toMatchObject({ status: 'ok' });
  });

  it('finds the asyncio loop and the frames of a Python process', async () => {
    const program =
      'import asyncio\nasync def m():\n  print("", flush=True)\n  await asyncio.sleep(60)\nasyncio.run(m())';
    const { pid } = await start('python3', ['-c', program]);
    const { checks } = doctor([pid]);
    expect(checks['target-runtime']?.detail).toMatch(/python 3\.\d+/);
    if (checks['target-memory']?.status !== 'ok') return;
    expect(checks['target-loop']).toMatchObject({
      status: 'ok',
      detail: expect.stringContaining('asyncio in thread'),
    });
    expect(checks['target-stacks']?.status).toBe('ok');
  });

  it('says why nothing of another user is seen, with the command that shows it', async () => {
    const pid = await foreign();
    const { code, checks } = doctor([pid], nobody);
    expect(code).toBe(0);
    expect(checks['target-stats']?.status).toBe('ok');
    for (const name of ['target-details', 'target-syscall', 'target-memory', 'target-loop'])
      expect(checks[name], name).toMatchObject({ status: 'missing' });
    expect(checks['target-memory']?.detail).toContain('it belongs to root');
    expect(checks['target-memory']?.remedy).toMatch(new RegExp(`^sudo .* attach ${pid}$`));
  });

  it('says that it is stopped, and how it goes on', async () => {
    const { pid, child } = await start('/bin/sh', ['-c', 'echo; read line']);
    child.kill('SIGSTOP');
    await until(() => /^State:\s+T/m.test(readFileSync(`/proc/${pid}/status`, 'utf8')));
    expect(doctor([pid]).checks['target']).toMatchObject({
      status: 'limited',
      remedy: `kill -CONT ${pid}`,
    });
  });

  it('exits 3 for a pid that is not there, 2 for what is no pid', () => {
    const gone = doctor([4_194_304]);
    expect(gone).toMatchObject({ code: 3, stderr: expect.stringContaining('no process has pid') });
    expect(doctor(['nonsense']).code).toBe(2);
    expect(doctor([1, 2]).code).toBe(2);
  });
});

describe('sudo', () => {
  /** Without PATH, as a root whose PATH lacks Node has it, and without anything else of ours. */
  const bare = (command: string, env: Readonly<Record<string, string>> = {}) =>
    spawnSync('/bin/sh', ['-c', command], { cwd: folder, env, encoding: 'utf8' });

  it.skipIf(!isRoot)(
    'is hinted at with a command that runs as it stands, where PATH has no Node (needs root)',
    async () => {
      const pid = await foreign();
      const args = ['attach', String(pid), '-d', '1', '--no-recording', '--json'];
      const denied = spawnSync(node, [main, ...args], {
        ...nobody,
        cwd: folder,
        env: {},
        encoding: 'utf8',
      });
      const [, hint = ''] = /^trace: {5}sudo (.*?) +# this time only$/m.exec(denied.stderr) ?? [];
      // The flags that were typed are in it.
      expect(hint).toContain(`attach ${pid} -d 1 --no-recording --json`);
      const run = bare(hint, { PATH: '/nonexistent' });
      expect({ code: run.status, stderr: run.stderr }).toMatchObject({ code: 0 });
      expect(JSON.parse(run.stdout)).toMatchObject({ command: 'attach', targets: [{ pid }] });
      expect(run.stderr).not.toContain('cannot read memory');
    },
  );

  it.runIf(isRoot && sudo.isWanted)('itself runs that command (needs root and sudo)', async () => {
    const pid = await foreign();
    const denied = spawnSync(
      node,
      [main, 'attach', String(pid), '-d', '1', '--no-recording', '--json'],
      {
        ...nobody,
        cwd: folder,
        env: {},
        encoding: 'utf8',
      },
    );
    const [, hint = ''] = /^trace: {5}(sudo .*?) +# this time only$/m.exec(denied.stderr) ?? [];
    const run = bare(hint, { PATH: `${dirname(sudo.path())}:/usr/bin:/bin` });
    expect({ code: run.status, stderr: run.stderr }).toMatchObject({ code: 0 });
    expect(JSON.parse(run.stdout)).toMatchObject({ targets: [{ pid }] });
  });

  it.skipIf(!isRoot)(
    'leaves recordings that belong to the caller, with every folder made for them (needs root)',
    async () => {
      const pid = await foreign();
      const work = mkdtempSync(join(folder, 'work-'));
      const run = spawnSync(node, [main, 'attach', String(pid), '-d', '1', '-q'], {
        cwd: work,
        env: { SUDO_UID: '12345', SUDO_GID: '23456', HOME: folder },
        encoding: 'utf8',
      });
      expect({ code: run.status, stderr: run.stderr }).toEqual({ code: 0, stderr: '' });
      const made = readdirSync(work, { recursive: true, encoding: 'utf8' });
      expect(made.length).toBeGreaterThanOrEqual(4);
      for (const path of made) {
        const { uid, gid } = statSync(join(work, path));
        expect({ path, uid, gid }).toEqual({ path, uid: 12_345, gid: 23_456 });
      }
      // What was there before stays whose it was.
      expect(statSync(work).uid).toBe(0);
    },
  );
});

/** A debugger stands between: one process that traces another. */
describe('a process that is traced already', () => {
  it.runIf(strace.isWanted)('is named with its tracer (needs strace)', async () => {
    const { pid } = await start('/bin/sh', ['-c', 'echo; exec sleep 60']);
    const tracer = spawn(strace.path(), ['-p', String(pid)], { stdio: 'ignore' });
    onTestFinished(() => void tracer.kill('SIGKILL'));
    await until(() => !/^TracerPid:\s+0$/m.test(readFileSync(`/proc/${pid}/status`, 'utf8')));
    expect(doctor([pid]).checks['target-traced']).toMatchObject({
      status: 'limited',
      detail: expect.stringContaining('strace'),
    });
  });
});
