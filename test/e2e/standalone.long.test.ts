import { execFileSync, spawnSync } from 'node:child_process';
import { once } from 'node:events';
import { mkdtempSync, readFileSync, readdirSync, rmSync, statSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { Worker } from 'node:worker_threads';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import manifest from '../../package.json' with { type: 'json' };
import { monotonicNow } from '../../src/core/clock.ts';
import { MetronomeCells } from '../../src/load/engine/metronome.ts';
import { startTarget } from '../targets/harness.ts';
import { type Ended, parseReport, runCli, verdicts } from './cli.ts';
import { type EmptyRoot, makeEmptyRoot, noRootReason } from './empty-root.ts';
import { startLoadServer } from './load-server.ts';

/*
 * `npm run build:standalone`, and what it makes where there is nothing else: no Node, no npm, no shell, no /etc, no /dev. The processes that
 * are watched run outside, so that none of their files can be opened.
 */

const ROOT = join(import.meta.dirname, '..', '..');
const NOBODY = 65_534;
const BLOCKS = { durations: [80], reps: 200, startS: 0.2, seconds: 60 } as const;
const noRoot = noRootReason();
const given = noRoot === null ? '' : ` (left out: ${noRoot})`;

const folder = mkdtempSync(join(tmpdir(), 'tracewright-standalone-'));
const executable = join(folder, 'trace-linux-x64');
let built = '';

beforeAll(() => {
  built = execFileSync(
    process.execPath,
    [join(ROOT, 'scripts', 'standalone', 'build.mjs'), '--out', folder],
    { cwd: folder, encoding: 'utf8' },
  );
});
afterAll(() => rmSync(folder, { recursive: true, force: true }));

describe('the build', () => {
  it('makes one executable, and says where it is and how large', () => {
    const size = (statSync(executable).size / 1e6).toFixed(1);
    expect(built).toMatch(`trace-linux-x64: ${size} MB, Node ${process.versions.node}, made in `);
    expect(statSync(executable).mode & 0o777).toBe(0o755);
  });

  it('makes one script of a module that is a thread, which runs without any file', async () => {
    const script = join(folder, 'standalone', 'src', 'load', 'engine', 'metronome-thread.js');
    const cells = new MetronomeCells();
    const thread = new Worker(readFileSync(script, 'utf8'), {
      eval: true,
      workerData: cells.buffer,
    });
    try {
      cells.set(monotonicNow());
      expect(await once(thread, 'message')).toEqual([null]);
    } finally {
      await thread.terminate();
    }
  });

  it('makes a program that says nothing of a flag in NODE_OPTIONS that its compiled code was not made for', () => {
    const { stdout, stderr } = spawnSync(executable, ['--version'], {
      encoding: 'utf8',
      env: { NODE_OPTIONS: '--max-old-space-size=200' },
    });
    expect({ stdout, stderr }).toEqual({ stdout: `trace ${manifest.version}\n`, stderr: '' });
  });
});

describe('explain', () => {
  it('has the page that it prints from within', () => {
    const options = { encoding: 'utf8', cwd: folder, env: { NO_COLOR: '1' } } as const;
    const { stdout, stderr, status } = spawnSync(executable, ['explain', 'TRC101'], options);
    expect({ stderr, status }).toEqual({ stderr: '', status: 0 });
    expect(stdout).toMatch(/^TRC101 {2}loop-blocked: [^]*^Numbers$[^]*^What to do$/m);
  });
});

describe.skipIf(noRoot !== null)(`in an empty root${given}`, () => {
  let root: EmptyRoot;
  beforeAll(() => {
    root = makeEmptyRoot(executable);
  });
  afterAll(() => root.remove());

  const trace = (...args: string[]): Promise<Ended> => root.start(args).ended;

  it('is alone', () => {
    const names = readdirSync(root.folder).filter((name) => !name.startsWith('lib'));
    expect(names.toSorted()).toEqual(['proc', 'tmp', 'trace']);
  });

  it('says its version, and on standard error nothing', async () => {
    expect(await trace('--version')).toMatchObject({
      code: 0,
      stdout: `trace ${manifest.version}\n`,
      stderr: '',
    });
  });

  it.each(['--help', 'attach --help', 'load --help', 'completion zsh'])(
    'says the same as the package to trace %s',
    async (line) => {
      const args = line.split(' ');
      const [alone, installed] = await Promise.all([trace(...args), runCli(args)]);
      expect(alone).toEqual(installed);
      expect(alone.code).toBe(0);
    },
  );

  it('says what works on the machine, though nothing is on the PATH', async () => {
    const { code, stdout, stderr } = await trace('doctor', '--json');
    expect({ code, stderr }).toEqual({ code: 0, stderr: '' });
    const { checks } = JSON.parse(stdout) as {
      checks: readonly { name: string; status: string; remedy: string | null }[];
    };
    for (const name of ['user', 'kernel', 'python', 'node', 'nvidia-smi'])
      expect(checks.find((check) => check.name === name)?.status, name).toBe('ok');
    expect(stdout).not.toMatch(/\bnp[mx]\b|main\.js/);
  });

  it('attaches to a Python process outside, names the function that blocks, and shows its recording again', async () => {
    const target = await startTarget('asyncio', { kinds: ['sleep'], ...BLOCKS });
    try {
      const attached = await trace('attach', String(target.pid), '-d', '3', '-o', '/tmp/recording');
      expect(attached.code, attached.stderr).toBe(1);
      expect(attached.stdout).toMatch(/^F1 .* loop-blocked \(TRC101\)/m);
      expect(attached.stdout).toMatch(/where\s+\d+ %\s+blocking_sleep/);
      const shown = await trace('show', '/tmp/recording');
      expect(shown.code, shown.stderr).toBe(1);
      const finding = (text: string): string => /^F1 [\s\S]*?^ {4}remedy/m.exec(text)?.[0] ?? text;
      expect(finding(shown.stdout)).toBe(finding(attached.stdout));
      // Anything of trace's can read it.
      const outside = await runCli(['show', join(root.folder, 'tmp', 'recording'), '--json']);
      expect(verdicts(parseReport(outside))[0]).toMatchObject({ code: 'TRC101', pid: target.pid });
    } finally {
      await target.stop();
    }
  });

  it('prints one JSON document for a Node process, whose inspector it opens, guarded by itself, and closes', async () => {
    // Not one that computes: in 3 of 7 runs, of the package too, V8's profiler names its caller instead (inlined?).
    const target = await startTarget('node-http', { kinds: ['sleep'], ...BLOCKS });
    try {
      const attached = await trace(
        'attach',
        String(target.pid),
        '-d',
        '3',
        '--inspect',
        '--json',
        '--no-recording',
      );
      const report = parseReport(attached);
      expect(report.tool.version).toBe(manifest.version);
      const [blocked] = verdicts(report).filter(({ code }) => code === 'TRC101');
      expect(blocked?.where[0]?.function, attached.stderr).toBe('blockingSleep');
      expect(blocked?.where[0]?.file).toMatch(/\/test\/targets\/node\/faults\.js$/);
      const left = await trace('cleanup', '--json');
      expect(left.code, left.stdout).toBe(0);
    } finally {
      await target.stop();
    }
  });

  it('answers a missing permission with its own path, and with no program beside it', async () => {
    const target = await startTarget('asyncio', { kinds: ['sleep'], ...BLOCKS });
    try {
      const args = ['attach', String(target.pid), '-d', '1', '--no-recording'];
      const { code, stderr } = await root.start(args, NOBODY).ended;
      expect(code).toBe(0);
      expect(stderr).toContain(`sudo /trace ${args.join(' ')}`);
      expect(stderr).not.toContain('main.js');
    } finally {
      await target.stop();
    }
  });

  it('sends load from its workers, timed by their metronome', async () => {
    const server = await startLoadServer();
    try {
      const args = ['-r', '40', '-d', '1', '--isl', '16', '--osl', '4', '--no-recording', '--json'];
      const ended = await trace('load', server.url, ...args);
      const { load } = JSON.parse(ended.stdout) as {
        load: { requests: { ok: number; failed: number }; client: { limited: boolean } };
      };
      expect(load.requests.failed).toBe(0);
      expect(load.requests.ok).toBeGreaterThan(20);
      expect(server.asked.length).toBeGreaterThanOrEqual(load.requests.ok);
      expect(ended.code).toBe(load.client.limited ? 6 : 0);
    } finally {
      await server.close();
    }
  });
});
