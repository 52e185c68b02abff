import { execFile } from 'node:child_process';
import { copyFileSync, existsSync, mkdtempSync, readdirSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { delimiter, join } from 'node:path';
import { setTimeout as wait } from 'node:timers/promises';
import { stripVTControlCharacters } from 'node:util';
import { it } from 'vitest';
import { type BugCase, readCases } from '../bugbench/cases.ts';
import { said } from '../bugbench/score.ts';
import { startDriver, watchCase } from '../bugbench/watch-case.ts';
import { locatePython, pythonEnvironment } from '../environments.ts';
import { cpuOf, milliseconds, percent, publish, rowsOf, table } from './measurements.ts';
import { clinicPeer, memlabPeer, type Peer } from './peers/install.ts';
import { silenceClinic } from './peers/restart.ts';
import { watchStops } from './peers/rounds.ts';

/*
 * What other tools tell of published bugs, beside trace: `TRACEWRIGHT_BUGBENCH_CASES=FOLDER npm run bench -- bugs`. A tool "shows the place" when one of
 * the case's words stands, as a whole token, where a reader looks first. That something is wrong, and of what kind, the reader has to know.
 */

const NAMES = [
  'openai-poll-blocking-sleep',
  'starlette-range-quadratic',
  'anyio-cancel-spin',
  'fastapi-yield-dep-deadlock',
  'sse-starlette-watcher-leak',
  'aiohttp-cookiejar-leak',
  'multidict-extend-leak',
  'openai-with-options-leak',
  'ws-protocol-redos',
  'multer-aborted-upload-leak',
  'openai-node-abort-listener-leak',
];
const PEERS = join(import.meta.dirname, 'peers');
const OWN = join(import.meta.dirname, '..', 'cases');
const DRIVER_S = 100;
const WARM_UP_S = 4;
const METRICS_S = 20;
const TRACE_S = 35;
/** Rows of memray's summary that are read. */
const FIRST_ROWS = 10;
const LIMIT_MS = 90_000;
const CLINIC_S = 25;
/** Cases measured at the same time: most of it is waiting. */
const AT_ONCE = 2;
const DOCTOR = 'clinic doctor';
const TOOLS = [
  'py-spy dump',
  'py-spy record',
  'pystack',
  'memray attach',
  'tracemalloc',
  DOCTOR,
  'memlab',
];
const NOTE = `"place": a word of the case (its function, file or class) stands where a reader looks first, in a line that is not the driver's: in any stack of a dump (py-spy, pystack), in the
stack with most samples of 6 s (py-spy record), in the ten first rows of memray's summary of 8 s, in the first five differences of two tracemalloc snapshots 14 s
apart with their tracebacks, in the traces of leaks that memlab prints of three heap snapshots 8 s apart. That is kind to them: none of these says that anything is wrong, nor of what kind,
and of a place in a hundred stacks the reader has to know that it is the one. In brackets how long the program was stopped (state T or t, or while V8 wrote the longest of the snapshots). py-spy and pystack attach;
memray has to be importable in the target, and injects itself by a debugger; tracemalloc and clinic need a restart, and under clinic the program runs as its child; memlab needs code loaded into the program, or a flag, that
writes the snapshots. clinic doctor says one word of the whole run, and no place. Process metrics are what a reader of a dashboard (Grafana on process metrics) sees in the 20 s after the start: that something grows, burns or stands still, and
never where. trace is its finding of an accepted kind with the mechanism, within ${TRACE_S} s, attached by pid (Python passive, which never stops it; Node with --inspect), on a run of its own. ${AT_ONCE} cases were measured at the same time. "–": not a tool for this
runtime. Not in the table: blocksnoop sees blocks of asyncio loops only, and here with no stacks ("What is compared" says why); of leaks, deadlocks and tasks it shows nothing by its nature.`;

interface Row {
  readonly id: string;
  readonly kinds: readonly string[];
  /** By tool: what it showed, or why there is no answer. */
  readonly shown: Readonly<Record<string, string>>;
  readonly metrics: string;
  readonly trace: string;
}

interface Output {
  /** Both streams: memlab says what it found on the second. */
  readonly text: string;
  /** The reason where it failed. */
  readonly failed: string | null;
}

/** Without what the test runner sets: memlab says nothing where it takes itself to be in a test. */
const inherited = (): NodeJS.ProcessEnv =>
  Object.fromEntries(
    Object.entries(process.env).filter(
      ([name]) => !/^(?:NODE_ENV|TEST|DEV|PROD|MODE|(?:VITEST|TRACEWRIGHT)\w*)$/.test(name),
    ),
  );

function outputOf(
  command: string,
  args: readonly string[],
  env: Readonly<Record<string, string>> = {},
): Promise<Output> {
  const options = { timeout: LIMIT_MS, env: { ...inherited(), ...env }, maxBuffer: 2 ** 26 };
  return new Promise((resolve) => {
    execFile(command, args, options, (error, stdout, stderr) => {
      const line = stripVTControlCharacters(stderr).trim().split('\n').at(-1) ?? '';
      const text = stripVTControlCharacters(`${stdout}\n${stderr}`);
      resolve({ text, failed: error === null ? null : line || error.message });
    });
  });
}

/** What stopped the program while a tool was at it. */
async function withStops(
  pid: number,
  folder: string,
  work: () => Promise<Output>,
): Promise<Output & { readonly stopped: string }> {
  const flag = mkdtempSync(join(folder, 'stops-'));
  // Null where the program ended meanwhile.
  const stops = watchStops(pid, LIMIT_MS / 1e3, flag).catch(() => null);
  const output = await work();
  rmSync(flag, { recursive: true });
  const seen = await stops;
  return {
    ...output,
    stopped: seen === null ? ' (the program ended)' : ` (${milliseconds(seen.stopped, 0)})`,
  };
}

/** Whether the text holds a word of the case as a whole token; lines of the driver itself do not count. */
function shows(text: string, { words }: BugCase): boolean {
  const lines = text.split('\n').filter((line) => !/driver\.(?:py|mjs)/.test(line));
  return words.some((word) => {
    const escaped = word.replaceAll(/[.*+?^${}()|[\]\\]/g, String.raw`\$&`);
    const token = new RegExp(`(?<![A-Za-z0-9_])${escaped}(?![A-Za-z0-9_])`);
    // A path may lie in an environment of any name: only what stands below its packages counts.
    return lines.some((line) =>
      token.test(line.replaceAll(/\S*(?:site-packages|node_modules)\//g, '')),
    );
  });
}

const answer = (
  of: BugCase,
  { text, failed, stopped = '' }: Output & { readonly stopped?: string },
): string =>
  failed === null
    ? `${shows(text, of) ? 'place' : 'no'}${stopped}`
    : `failed: ${failed.replaceAll('|', ' ').slice(0, 60)}`;

/** What a page of process metrics shows: memory, CPU, descriptors, threads. */
function readingsOf(pid: number): { readonly at: number; readonly of: readonly number[] } {
  const status = readFileSync(`/proc/${pid}/status`, 'utf8');
  const field = (name: string): number =>
    Number(new RegExp(`^${name}:\\s+(\\d+)`, 'm').exec(status)?.[1] ?? 0);
  const open = readdirSync(`/proc/${pid}/fd`).length;
  return {
    at: performance.now() / 1e3,
    of: [cpuOf(pid), field('VmRSS') / 1024, open, field('Threads')],
  };
}

async function metricsOf(pid: number): Promise<string> {
  const before = readingsOf(pid);
  await wait(METRICS_S * 1e3);
  const after = readingsOf(pid);
  const [cpu = 0, memory = 0, open = 0, threads = 0] = after.of.map(
    (v, i) => v - (before.of[i] ?? 0),
  );
  const sign = (n: number): string => (n < 0 ? '−' : '+') + Math.abs(n).toFixed(0);
  return `CPU ${percent(cpu / (after.at - before.at), 0)}, RSS ${sign(memory)} MiB, descriptors ${sign(open)}, threads ${sign(threads)}`;
}

/** Tools that attach, one after the other, to one run of the buggy release. */
async function attached(of: BugCase, bin: string): Promise<Pick<Row, 'shown' | 'metrics'>> {
  const folder = mkdtempSync(join(tmpdir(), 'bugs-'));
  const { buggy } = of.recipes;
  const hasMemray = buggy.kind === 'python' && buggy.version.startsWith('3.11');
  const packages = join(bin, '..', 'lib', 'python3.11', 'site-packages');
  const env: Record<string, string> = hasMemray ? { PYTHONPATH: packages } : {};
  const driver = await startDriver(of, 'buggy', DRIVER_S, { env });
  const pid = String(driver.pid);
  try {
    await wait(WARM_UP_S * 1e3);
    const metrics = await metricsOf(driver.pid);
    const spy = join(bin, 'py-spy');
    const raw = join(folder, 'spy.txt');
    const ask = (command: string, args: readonly string[]) =>
      withStops(driver.pid, folder, () => outputOf(command, args));
    const dump = await ask(spy, ['dump', '--pid', pid]);
    const record = await ask(spy, ['record', '-d', '6', '-f', 'raw', '-o', raw, '--pid', pid]);
    const stacks = existsSync(raw) ? readFileSync(raw, 'utf8').trim().split('\n') : [];
    const [top = ''] = stacks.toSorted((a, b) => weightOf(b) - weightOf(a));
    const stack = await ask(join(bin, 'pystack'), ['remote', pid]);
    const bytes = join(folder, 'memray.bin');
    const memray = join(bin, 'memray');
    const attach = await ask(memray, ['attach', '--duration', '8', '-o', bytes, pid]);
    await wait(10_000);
    const summary = await outputOf(memray, ['summary', bytes], { COLUMNS: '300' });
    const first = summary.text
      .split('\n')
      .filter((line) => line.includes('│'))
      .slice(0, FIRST_ROWS);
    return {
      metrics,
      shown: {
        'py-spy dump': answer(of, dump),
        'py-spy record': answer(of, { ...record, text: top.replaceAll(';', '\n') }),
        pystack: answer(of, stack),
        'memray attach': !hasMemray
          ? 'not in its Python'
          : answer(of, {
              text: first.join('\n'),
              failed: attach.failed ?? summary.failed,
              stopped: attach.stopped,
            }),
      },
    };
  } finally {
    await driver.stop();
    rmSync(folder, { recursive: true, force: true });
  }
}

const weightOf = (line: string): number => Number(line.slice(line.lastIndexOf(' ') + 1));

/** The release started anew with tracemalloc and two snapshots, 14 s apart. */
async function snapshots(of: BugCase): Promise<string> {
  const folder = mkdtempSync(join(tmpdir(), 'bugs-'));
  copyFileSync(join(PEERS, 'snapshots.py'), join(folder, 'sitecustomize.py'));
  const out = join(folder, 'out.txt');
  const env = { PYTHONPATH: folder, PYTHONTRACEMALLOC: '10', SNAPSHOTS: out };
  const driver = await startDriver(of, 'buggy', DRIVER_S, { env });
  try {
    for (let s = 0; s < 45 && !existsSync(out); s++) await wait(1000);
    await wait(500);
    if (!existsSync(out)) return 'no snapshot in 45 s';
    return answer(of, { text: readFileSync(out, 'utf8'), failed: null });
  } finally {
    await driver.stop();
    rmSync(folder, { recursive: true, force: true });
  }
}

async function traced(of: BugCase): Promise<string> {
  const { verdict, findings } = await watchCase(of, 'buggy', { watchS: TRACE_S, toTheEnd: false });
  const right = said(findings).find(({ kind }) => of.kinds.includes(kind));
  if (right === undefined) return 'no';
  return `${right.kind}${right.mechanism === null ? '' : `, ${right.mechanism}`}${verdict.place ? '' : '; not the place'}`;
}

/** Node programs are started anew under clinic doctor, which says one thing of the whole run. */
async function doctored(of: BugCase, clinic: string): Promise<string> {
  const folder = mkdtempSync(join(tmpdir(), 'bugs-'));
  const behind = [clinic, 'doctor', '--open=false', '--dest', folder, '--'];
  const driver = await startDriver(of, 'buggy', CLINIC_S, { behind });
  try {
    await driver.showed();
    const pages = readdirSync(folder, { recursive: true, encoding: 'utf8' });
    const page = pages.find((name) => name.endsWith('.html'));
    if (page === undefined) return 'no report';
    const text = readFileSync(join(folder, page), 'utf8');
    const verdict = /"issueCategory":"([^"]+)"/.exec(text)?.[1];
    return verdict === undefined || verdict === 'none' ? 'no issue' : `"${verdict}"`;
  } finally {
    await driver.stop();
    rmSync(folder, { recursive: true, force: true });
  }
}

/** Three heap snapshots of a run, and what memlab finds in the last that came between the first two. */
async function memlabbed(of: BugCase, memlab: string): Promise<string> {
  const folder = mkdtempSync(join(tmpdir(), 'bugs-'));
  const preload = join(PEERS, 'snapshots.cjs');
  const env = { NODE_OPTIONS: `--require=${preload}`, SNAPSHOTS: folder };
  const driver = await startDriver(of, 'buggy', DRIVER_S, { env });
  const [baseline = '', target = '', last = ''] = ['baseline', 'target', 'final'].map((name) =>
    join(folder, `${name}.heapsnapshot`),
  );
  try {
    for (let s = 0; s < DRIVER_S && !existsSync(last); s++) await wait(1000);
    await driver.stop();
    const times = readdirSync(folder).filter((name) => name.endsWith('.seconds'));
    const longest = times.map((name) => Number(readFileSync(join(folder, name), 'utf8')));
    const of3 = ['--baseline', baseline, '--target', target, '--final', last];
    const found = await outputOf(memlab, ['find-leaks', ...of3, '--work-dir', folder]);
    return answer(of, { ...found, stopped: ` (${milliseconds(Math.max(...longest), 0)})` });
  } finally {
    await driver.stop();
    rmSync(folder, { recursive: true, force: true });
  }
}

interface NodePeers {
  readonly clinic: Peer;
  readonly memlab: Peer;
}

async function measured(of: BugCase, bin: string, { clinic, memlab }: NodePeers): Promise<Row> {
  const trace = await traced(of);
  if (of.recipes.buggy.kind === 'node') {
    const driver = await startDriver(of, 'buggy', DRIVER_S);
    await wait(WARM_UP_S * 1e3);
    let metrics: string;
    try {
      metrics = await metricsOf(driver.pid);
    } finally {
      await driver.stop();
    }
    const asked = ({ path, reason }: Peer, ask: (at: string) => Promise<string>) =>
      path === null ? Promise.resolve(reason ?? 'not here') : ask(path);
    const verdict = await asked(clinic, (path) => doctored(of, path));
    const leaks = await asked(memlab, (path) => memlabbed(of, path));
    const shown = { [DOCTOR]: verdict, memlab: leaks };
    return { id: of.id, kinds: of.kinds, metrics, shown, trace };
  }
  const asked = await attached(of, bin);
  const tracemalloc = await snapshots(of);
  const shown = { ...asked.shown, tracemalloc };
  return { id: of.id, kinds: of.kinds, metrics: asked.metrics, shown, trace };
}

const failed = (of: BugCase, error: unknown): Row => ({
  id: of.id,
  kinds: of.kinds,
  metrics: `could not be measured: ${error instanceof Error ? (error.message.split('\n')[0] ?? '') : String(error)}`,
  shown: {},
  trace: '–',
});

it('published bugs and other tools', async () => {
  silenceClinic();
  const folders = [OWN, ...(process.env['TRACEWRIGHT_BUGBENCH_CASES'] ?? '').split(delimiter)];
  const cases = folders
    .filter((folder) => folder !== '')
    .flatMap((folder) => readCases(folder, NAMES));
  const pins = join(PEERS, 'requirements-bugs.txt');
  const python = locatePython('3.11')?.path;
  const { bin } = await pythonEnvironment(['py-spy', 'memray', 'pystack'], python, pins);
  const peers = { clinic: await clinicPeer(), memlab: await memlabPeer() };
  const rows: Row[] = [];
  for (let from = 0; from < cases.length; from += AT_ONCE)
    rows.push(
      ...(await Promise.all(
        cases.slice(from, from + AT_ONCE).map(async (of) => {
          try {
            const [row] = await rowsOf(`bugs-${of.id}`, 1, () => measured(of, bin, peers));
            return row ?? failed(of, 'nothing');
          } catch (error) {
            // Not kept: the next run tries it again.
            return failed(of, error);
          }
        }),
      )),
    );
  const all = table(
    ['bug', 'accepted', ...TOOLS, 'process metrics', 'trace'],
    rows.map(({ id, kinds, shown, metrics, trace }) => [
      id,
      kinds.join(', '),
      ...TOOLS.map((tool) => shown[tool] ?? '–'),
      metrics,
      trace,
    ]),
  );
  publish(
    'Published bugs: what other tools show',
    [
      `The releases with the bug of ${rows.length} cases of [the bug bench](bugbench.md), n = 1; py-spy 0.4.3, memray 1.20.0, pystack 1.7.2, clinic ${peers.clinic.version}, memlab ${peers.memlab.version}.`,
      all,
      NOTE,
    ].join('\n\n'),
    'benchmarks.md',
  );
});
