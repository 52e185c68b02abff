import { execFileSync } from 'node:child_process';
import { copyFileSync, mkdirSync, readFileSync, readlinkSync, writeFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { freePort } from '../collectors/node/inspected.ts';
import { type CliOptions, runCli } from '../e2e/cli.ts';
import type { Running } from '../targets/harness.ts';
import { type Entrance, NOT_RUN } from './arena.ts';
import { damaged, damageOneFile, pick } from './damage.ts';
import { falseInspector, startTicksOf, waitingNode, waitingPython } from './targets.ts';

/*
 * Every way in by which text or bytes come from outside: what is good there, and which verbs read
 * it.
 */

/**
 * Runs trace on what is good. Throws when trace did not take it: then there is nothing to damage.
 */
async function make(args: readonly string[], options: CliOptions = {}): Promise<void> {
  const { code, stderr } = await runCli(args, options);
  // 1: with a finding.
  if (code !== 0 && code !== 1) throw new Error(`trace ${args.join(' ')}: ${stderr}`);
}

/** A file that is there with its folders. */
function put(path: string, text: string | Buffer): void {
  mkdirSync(dirname(path), { recursive: true });
  writeFileSync(path, text, { mode: 0o600 });
}

const recordings: Entrance = {
  name: 'recordings',
  async prepare(folder) {
    const target = await waitingPython();
    try {
      await make(['attach', String(target.pid), '-d', '2', '-o', join(folder, 'recording')]);
    } finally {
      await target.stop();
    }
  },
  damage(folder, outside, random) {
    damageOneFile(join(folder, 'recording'), outside, random);
    const path = join(folder, 'recording');
    const args = pick(random, [
      ['show', path],
      ['show', path, '--json'],
      ['hypotheses', path],
      ['profile', path],
      ['ls', folder],
    ]);
    return Promise.resolve({ args });
  },
};

const SESSION = ['session', 'start', 'it hangs', '--no-environment', '--actual', 'no answer'];

const sessions: Entrance = {
  name: 'session files',
  async prepare(folder) {
    await make(SESSION, { cwd: folder });
  },
  damage(folder, outside, random) {
    damageOneFile(join(folder, '.planning'), outside, random);
    const args = pick(random, [
      ['session', 'list'],
      ['session', 'status'],
      ['session', 'continue'],
      ['session', 'brief'],
      ['session', 'report'],
      ['session', 'note', 'seen again'],
    ]);
    return Promise.resolve({ args });
  },
};

const SETTINGS = {
  lag_threshold: '50ms',
  duration: 30,
  output: 'runs',
  notes: ['notes.md'],
};

const settings: Entrance = {
  name: 'settings',
  prepare(folder) {
    put(join(folder, '.tracewright', 'config.json'), JSON.stringify(SETTINGS));
    put(join(folder, 'config', 'tracewright', 'config.json'), JSON.stringify(SETTINGS));
    return Promise.resolve();
  },
  damage(folder, outside, random) {
    const file = pick(random, ['.tracewright', join('config', 'tracewright')]);
    damageOneFile(join(folder, file), outside, random);
    return Promise.resolve({ args: pick(random, [['ls'], SESSION]) });
  },
};

/** Written by a trace that is gone. */
const GONE = { pid: 4_194_303, startTicks: 1 };

class Journals implements Entrance {
  readonly name = 'journals';
  #target: Running | null = null;

  async prepare(folder: string): Promise<void> {
    this.#target = await waitingNode();
    const { pid } = this.#target;
    const boot = readFileSync('/proc/sys/kernel/random/boot_id', 'utf8').trim();
    const startTicks = startTicksOf(pid);
    const touched = {
      version: 1,
      pid,
      startTicks,
      owner: GONE,
      guardian: null,
      stage: 'open',
      opens: true,
      portsBefore: [],
      inspector: { port: await freePort(), id: '0b2a7a2e-4f1c-4d7e-9d55-2c6a4d7f5a10' },
      at: new Date().toISOString(),
      boot,
      pidNamespace: readlinkSync('/proc/self/ns/pid'),
    };
    const own = `${GONE.pid}-${GONE.startTicks}`;
    const tracing = { version: 1, instance: `tracewright-${own}`, pid, owner: GONE, boot };
    const journals = join(folder, 'state', 'tracewright', 'touched');
    put(join(journals, `${pid}-${startTicks}.json`), `${JSON.stringify(touched)}\n`);
    put(join(journals, `tracing-${own}.json`), `${JSON.stringify(tracing)}\n`);
  }

  damage(folder: string, outside: string, random: () => number) {
    damageOneFile(join(folder, 'state'), outside, random);
    return Promise.resolve({ args: pick(random, [['cleanup'], ['cleanup', '--dry-run']]) });
  }

  async close(): Promise<void> {
    await this.#target?.stop();
  }
}

const LISTED = { id: 'x', type: 'node', webSocketDebuggerUrl: 'ws://127.0.0.1:PORT/x' };
/** To `/json/version`, to `/json/list`, then to what is asked. */
const REPLIES: readonly object[] = [
  { Browser: 'node.js/v20.20.2', 'Protocol-Version': '1.1' },
  [LISTED],
  { id: 'ID', result: {} },
  { id: 'ID', result: { usedSize: 4_000_000, totalSize: 6_000_000 } },
  { id: 'ID', result: { result: { type: 'object', value: { turns: 1, samples: [] } } } },
  { method: 'Profiler.consoleProfileFinished', params: { id: '1', profile: {} } },
];

class Inspectors implements Entrance {
  readonly name = 'inspector replies';
  #target: Running | null = null;
  #good = '';

  async prepare(folder: string): Promise<void> {
    this.#good = REPLIES.map((reply) => JSON.stringify(reply)).join('\n');
    // Beside the folders of the cases: the process outlives them.
    const file = join(dirname(folder), 'replies');
    put(file, this.#good);
    this.#target = await falseInspector(await freePort(), file);
  }

  damage(folder: string, _outside: string, random: () => number) {
    put(join(dirname(folder), 'replies'), damaged(Buffer.from(this.#good), random));
    const pid = String(this.#target?.pid ?? 0);
    // Not heap, which gives V8 a minute for each look: a large heap takes that.
    const args = pick(random, [
      ['attach', pid, '-d', '1', '--no-recording'],
      ['profile', pid, '-d', '1', '-o', join(folder, 'profile')],
    ]);
    return Promise.resolve({ args });
  }

  async close(): Promise<void> {
    await this.#target?.stop();
  }
}

/** Files of a process that trace reads, below its folder. */
const PROC_FILES = [
  'stat',
  'status',
  'maps',
  'cgroup',
  'cmdline',
  'environ',
  'limits',
  'comm',
  'io',
  'schedstat',
  'syscall',
  'net/tcp',
  'mountinfo',
  'oom_score_adj',
];
/** Puts a file in the place of another, for the command behind them only. */
const WITH_FILE = `mount --bind "$1" "$2" || exit ${NOT_RUN}; shift 2; exec "$@"`;

class ProcFiles implements Entrance {
  readonly name = 'files of /proc';
  #target: Running | null = null;

  async prepare(): Promise<void> {
    this.#target = await waitingPython();
  }

  damage(folder: string, _outside: string, random: () => number) {
    const pid = String(this.#target?.pid ?? 0);
    const place = `/proc/${pid}/${pick(random, PROC_FILES)}`;
    const file = join(folder, 'put');
    put(file, damaged(readFileSync(place), random));
    const args = pick(random, [
      ['attach', pid, '-d', '1', '--no-recording'],
      ['tasks', pid],
      ['doctor', pid],
      ['attach'],
    ]);
    const command = ['unshare', '-m', 'sh', '-c', WITH_FILE, 'sh', file, place, process.execPath];
    return Promise.resolve({ args, command });
  }

  async close(): Promise<void> {
    await this.#target?.stop();
  }
}

/** A start of Node costs more than reading a library. */
const LIBRARIES_AT_ONCE = 50;

const symbols: Entrance = {
  name: 'symbols of libraries',
  prepare(folder) {
    const script = 'import _ctypes; print(_ctypes.__file__)';
    const library = execFileSync('python3', ['-c', script], { encoding: 'utf8' }).trim();
    copyFileSync(library, join(folder, 'library'));
    return Promise.resolve();
  },
  damage(folder, _, random) {
    const good = readFileSync(join(folder, 'library'));
    for (let i = 0; i < LIBRARIES_AT_ONCE; i += 1)
      put(join(folder, 'libraries', String(i)), damagedLibrary(good, random));
    const reader = join(import.meta.dirname, 'symbols.mjs');
    const command = [process.execPath, reader];
    return Promise.resolve({ args: [join(folder, 'libraries')], command });
  },
};

/** The headers of the file and of its sections lie in the first and the last few kilobytes. */
const HEADERS = 4096;

function damagedLibrary(good: Buffer, random: () => number): Buffer {
  const part = random();
  if (part < 1 / 3) return damaged(good, random);
  const at = part < 2 / 3 ? HEADERS : good.length - HEADERS;
  const [first, last] = [good.subarray(0, at), good.subarray(at)];
  return part < 2 / 3
    ? Buffer.concat([damaged(first, random), last])
    : Buffer.concat([first, damaged(last, random)]);
}

export const ENTRANCES: readonly Entrance[] = [
  recordings,
  sessions,
  settings,
  new Journals(),
  new Inspectors(),
  new ProcFiles(),
  symbols,
];
