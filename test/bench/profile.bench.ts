import { spawn } from 'node:child_process';
import { existsSync, mkdtempSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { expect, it } from 'vitest';
import { MAIN } from '../e2e/cli.ts';
import { interpreters } from '../environments.ts';
import { startReady } from '../targets/harness.ts';
import { percent, publish, rowsOf, setting, table } from './measurements.ts';
import { installPeers, type Peers } from './peers/install.ts';

/*
 * `trace profile` beside py-spy and Austin on a target with known shares: what each takes of a core, how many of the stacks it was asked for
 * it brought, and how many of these are whole. A short run (TRACEWRIGHT_BENCH_S) is printed and not published.
 */

const DEFAULT_S = 30;
const SECONDS = setting('TRACEWRIGHT_BENCH_S', DEFAULT_S);
const RATES = [100, 1000] as const;
/** Programs of seconds that start and end: what is left of them by then hangs. */
const GRACE_S = 60;
/** How often the tool's own CPU time is read; the last reading before its end counts. */
const READ_EVERY_MS = 50;
const TICKS_A_SECOND = 100;

interface Tool {
  readonly name: string;
  command(parts: { pid: number; rate: number; file: string }): readonly string[];
}

interface Row {
  readonly tool: string;
  readonly rate: number;
  /** Of a core, start and end included. */
  readonly own: number;
  /** Stacks of the worker, those in which it is whole (down to burn), and those of hot() among these. */
  readonly stacks: number;
  readonly whole: number;
  readonly hot: number;
}

function toolsOf(peers: Peers): readonly Tool[] {
  const trace = (name: string, ...flags: string[]): Tool => ({
    name,
    command: ({ pid, rate, file }) => [
      process.execPath,
      MAIN,
      'profile',
      String(pid),
      '-d',
      String(SECONDS),
      '-r',
      String(rate),
      '-f',
      'collapsed',
      '-o',
      file,
      ...flags,
    ],
  });
  const tools = [
    trace('trace profile', '--max-overhead', '100'),
    trace('trace profile, --max-overhead 3 %'),
  ];
  const { 'py-spy': pySpy, austin } = peers;
  const { path } = pySpy;
  if (path !== null)
    for (const flags of [[], ['--nonblocking']])
      tools.push({
        name: ['py-spy record', ...flags].join(' '),
        command: ({ pid, rate, file }) => [
          path,
          'record',
          `--pid=${pid}`,
          `--rate=${rate}`,
          `--duration=${SECONDS}`,
          '--format=raw',
          `--output=${file}`,
          ...flags,
        ],
      });
  const austinPath = austin.path;
  if (austinPath !== null)
    tools.push({
      name: 'austin',
      command: ({ pid, rate, file }) => [
        austinPath,
        '-i',
        String(1e6 / rate),
        '-x',
        String(SECONDS),
        '-o',
        file,
        '-p',
        String(pid),
      ],
    });
  return tools;
}

async function measure(tool: Tool, rate: number): Promise<Row> {
  const python = interpreters()[0]?.path ?? 'python3';
  const script = join(import.meta.dirname, '..', 'targets', 'python', 'cpu_shares.py');
  const target = await startReady(python, [script]);
  const folder = mkdtempSync(join(tmpdir(), 'tracewright-bench-'));
  try {
    const file = join(folder, 'out.collapsed');
    const own = await cpuOfRun(tool.command({ pid: target.pid, rate, file }));
    return { tool: tool.name, rate, own: own / SECONDS, ...countStacks(file) };
  } finally {
    await target.stop();
    rmSync(folder, { recursive: true, force: true });
  }
}

/** CPU seconds of a command, by what the kernel last said before it ended. */
function cpuOfRun([program = '', ...args]: readonly string[]): Promise<number> {
  return new Promise((resolve, reject) => {
    const child = spawn(program, args, { stdio: 'ignore' });
    let cpu = 0;
    const reading = setInterval(() => {
      try {
        const fields = readFileSync(`/proc/${child.pid}/stat`, 'latin1').split(') ')[1]?.split(' ');
        cpu = (Number(fields?.[11]) + Number(fields?.[12])) / TICKS_A_SECOND;
      } catch {
        // It has ended.
      }
    }, READ_EVERY_MS);
    const limit = setTimeout(() => child.kill('SIGKILL'), (SECONDS + GRACE_S) * 1e3);
    child.on('error', reject);
    child.on('exit', () => {
      clearInterval(reading);
      clearTimeout(limit);
      resolve(cpu);
    });
  });
}

/** Collapsed stacks of any of the tools: those of the worker hold work(). Austin counts microseconds, a line a sample. */
function countStacks(file: string): Pick<Row, 'stacks' | 'whole' | 'hot'> {
  const counted = { stacks: 0, whole: 0, hot: 0 };
  const lines = existsSync(file) ? readFileSync(file, 'utf8').split('\n') : [];
  for (const line of lines) {
    const [, stack = '', count = '0'] = /^(.*) (\d+)$/.exec(line) ?? [];
    if (!/[;: ]work[ :]/.test(stack)) continue;
    const looks = stack.startsWith('P') ? 1 : Number(count);
    counted.stacks += looks;
    if (!/[;: ]burn[ :][^;]*$/.test(stack)) continue;
    counted.whole += looks;
    if (/[;: ]hot[ :]/.test(stack)) counted.hot += looks;
  }
  return counted;
}

it('takes profiles for little, and whole', async () => {
  const tools = toolsOf(await installPeers());
  const cases = RATES.flatMap((rate) => tools.map((tool) => ({ tool, rate })));
  const rows = await rowsOf(`profile-${SECONDS}`, cases.length, (index) => {
    const one = cases[index];
    if (one === undefined) throw new Error(`no case ${index}`);
    return measure(one.tool, one.rate);
  });
  const body = `One worker thread of CPython works without a pause, 75 % of its CPU time in \`hot()\`, 25 % in \`warm()\`; two threads wait. ${SECONDS} s for each tool and rate, one
after the other. CPU: user and system time of the tool, its start and end included. Whole: stacks of the worker down to the function that runs.

${table(
  ['tool', 'rate', 'CPU', 'stacks of those asked for', 'whole', 'hot() among them'],
  rows.map(({ tool, rate, own, stacks, whole, hot }) => [
    tool,
    `${rate} Hz`,
    percent(own),
    percent(stacks / (rate * SECONDS)),
    stacks === 0 ? '-' : percent(whole / stacks),
    whole === 0 ? '-' : percent(hot / whole),
  ]),
)}`;
  if (SECONDS >= DEFAULT_S) publish('Profiles', body, 'benchmarks.md');
  else console.log(body);
  for (const { tool, stacks } of rows) expect(stacks, tool).toBeGreaterThan(0);
});
