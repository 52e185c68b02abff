import { spawn } from 'node:child_process';
import { mkdtempSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { setTimeout as wait } from 'node:timers/promises';
import { stripVTControlCharacters } from 'node:util';
import { it } from 'vitest';
import { median } from '../../src/core/statistics.ts';
import type { Seconds } from '../../src/core/types.ts';
import { locatePython } from '../environments.ts';
import { type Running, startReady } from '../targets/harness.ts';
import { milliseconds, publish, rowsOf, setting, table } from './measurements.ts';
import { type Stops, watchStops } from './peers/rounds.ts';
import {
  type InsideTool,
  nodeTools,
  pythonTools,
  type Question,
  QUESTIONS,
  type Target,
} from './inside/tools.ts';

/*
 * `trace tasks`, `heap` and `profile` beside tools that also look inside: what each says of one program in which everything they look for was
 * planted, what it wants before, how long it takes, and how long it holds the program up. Five minutes on a quiet machine.
 */

const ROUNDS = setting('TRACEWRIGHT_BENCH_INSIDE_ROUNDS', 3);
/** The target fills its cache before it is looked at. */
const SETTLE_MS = 1500;
/** A tool that takes longer hangs. */
const LIMIT_S: Seconds = 120;
/** How long nothing is done, to see how late the loop is without a tool. */
const NOTHING_S: Seconds = 3;

interface Row {
  readonly tool: string;
  readonly answered: Partial<Record<Question, boolean>>;
  readonly seconds: Seconds;
  readonly cpu: Seconds;
  readonly stops: Stops;
  /** The latest that a turn of the target's loop was, while the tool ran. */
  readonly late: Seconds;
  /** What it said when it failed. */
  readonly failure: string | null;
}

/** Nothing at all, as a tool. */
const nothing = (target: Target): InsideTool => ({
  name: 'nothing',
  version: '',
  wants: '',
  target,
  script: () => `sleep ${NOTHING_S}`,
  answers: {},
});

async function measure(tool: InsideTool): Promise<Row> {
  const folder = mkdtempSync(join(tmpdir(), 'tracewright-inside-'));
  const [command = '', ...args] = tool.target.command(folder);
  const target = await startReady(command, args);
  try {
    await wait(SETTLE_MS);
    await lateness(target);
    const spent = join(folder, '..', `${folder.split('/').at(-1)}.json`);
    const stops = watchStops(target.pid, LIMIT_S, folder);
    const from = performance.now();
    const script = tool.script({ pid: target.pid, port: target.port, folder });
    const text = await output(script, folder, spent);
    const seconds = (performance.now() - from) / 1e3;
    const late = await lateness(target);
    const { cpu, code } = JSON.parse(readFileSync(spent, 'utf8')) as { cpu: Seconds; code: number };
    rmSync(spent);
    // What watches for stops ends with the folder.
    rmSync(folder, { recursive: true, force: true });
    const failure = code === 0 ? null : (text.trim().split('\n').at(-1) ?? '').slice(0, 200);
    const answered: Partial<Record<Question, boolean>> = {};
    for (const [question, holds] of Object.entries(tool.answers))
      answered[question as Question] = code === 0 && holds(text);
    return { tool: tool.name, answered, seconds, cpu, stops: await stops, late, failure };
  } finally {
    await target.stop();
    rmSync(folder, { recursive: true, force: true });
  }
}

/** How late the loop was since it was asked last. */
async function lateness(target: Running): Promise<Seconds> {
  const before = target.lines.length;
  target.child.stdin?.write('late\n');
  const until = performance.now() + LIMIT_S * 1e3;
  while (performance.now() < until) {
    const line = target.lines.slice(before).find((one) => one.startsWith('LATE '));
    if (line !== undefined) return Number(line.slice('LATE '.length));
    // oxlint-disable-next-line no-await-in-loop -- until it has answered
    await wait(10);
  }
  throw new Error('the target does not answer');
}

/** Without what the test runner sets: memlab says nothing where it takes itself to be in a test. */
function inherited(): NodeJS.ProcessEnv {
  const isRunners =
    /^(?:NODE_ENV|TEST|DEV|PROD|MODE|FORCE_COLOR|(?:VITEST|JEST|TRACEWRIGHT|OTEL)\w*)$/;
  return Object.fromEntries(Object.entries(process.env).filter(([name]) => !isRunners.test(name)));
}

/** Runs a script to its end, limited; its output, with what it spent in a file. */
function output(script: string, folder: string, spent: string): Promise<string> {
  const python = locatePython('3.11')?.path ?? 'python3';
  const counter = join(import.meta.dirname, 'inside', 'spent.py');
  const command = [counter, spent, 'timeout', String(LIMIT_S), 'sh', '-c', script];
  const env = { ...inherited(), NO_COLOR: '1', COLUMNS: '200' };
  const child = spawn(python, command, { stdio: ['ignore', 'pipe', 'pipe'], env, cwd: folder });
  let text = '';
  let errors = '';
  child.stdout.setEncoding('utf8').on('data', (part: string) => (text += part));
  child.stderr.setEncoding('utf8').on('data', (part: string) => (errors += part));
  return new Promise((resolve, reject) => {
    child.on('error', reject);
    child.on('close', (code) => {
      const said = code === 0 && text !== '' ? text : `${text}\n${errors}`;
      resolve(stripVTControlCharacters(said));
    });
  });
}

/** Each tool in turn, each round the other way about. */
async function rounds(name: string, tools: readonly InsideTool[]): Promise<Row[]> {
  return rowsOf(name, tools.length * ROUNDS, (index) => {
    const turned = Math.floor(index / tools.length) % 2 === 1 ? tools.toReversed() : tools;
    const tool = turned[index % tools.length];
    if (tool === undefined) throw new Error('no such tool');
    return measure(tool);
  });
}

function page(
  tools: readonly InsideTool[],
  rows: readonly Row[],
  asked: readonly Question[],
): string {
  const targets = [...new Set(tools.map(({ target }) => target.name))];
  const lines = tools.map((tool) => {
    // The same tool is there for two targets: rows of either come in its place.
    const own = rows.filter((row) => row.tool === keyOf(tool));
    const of = (pick: (row: Row) => number): number => median(own.map(pick));
    const failures = own.filter(({ failure }) => failure !== null);
    const said = failures.length > 0 ? ` (failed ${failures.length} of ${own.length})` : '';
    return [
      `${tool.name}${said}`,
      tool.version,
      ...(targets.length > 1 ? [tool.target.name] : []),
      tool.wants === '' ? 'nothing' : tool.wants,
      ...asked.map((question) => told(own, question)),
      `${of(({ seconds }) => seconds).toFixed(1)} s`,
      `${of(({ cpu }) => cpu).toFixed(2)} s`,
      milliseconds(of(({ stops }) => stops.stopped)),
      `${milliseconds(
        of(({ late }) => late),
        0,
      )} (${milliseconds(Math.min(...own.map(({ late }) => late)), 0)}–${milliseconds(Math.max(...own.map(({ late }) => late)), 0)})`,
    ];
  });
  const head = [
    'tool',
    'version',
    ...(targets.length > 1 ? ['target'] : []),
    'wants',
    ...asked.map((question) => QUESTIONS[question]),
    'time',
    'own CPU',
    'target stopped',
    'loop late, most',
  ];
  return table(head, lines);
}

/** The name that rows of a tool have: with its target where that is another. */
const keyOf = ({ name, target }: InsideTool): string => `${name} @ ${target.name}`;
const keyed = (tools: readonly InsideTool[]): readonly InsideTool[] =>
  tools.map((tool) => ({ ...tool, name: keyOf(tool) }));

function told(rows: readonly Row[], question: Question): string {
  const answers = rows.flatMap(({ answered }) => answered[question] ?? []);
  if (answers.length === 0) return '–';
  const right = answers.filter(Boolean).length;
  return right === answers.length ? 'yes' : `${right} of ${answers.length}`;
}

const NOTE = `Each time a new target, alone with one tool; ${ROUNDS} rounds, every other in the opposite order. *yes*: in every round its output says it, and right; *k of n*: in k of
n rounds; –: it has no such answer. Time is from start to end, the stretch that was asked for (3 s) included; own CPU is all that the command used and started, in seconds; stopped: how long the main
thread was stopped (T, t), read by another process some thousand times a second; loop late: how much later than due a timer of 5 ms was at the most, median of the rounds (least–most), beside *nothing*. Medians, on a
machine with other work: what differs by less than *nothing* does from round to round is noise.`;

it('inside a Python process', async () => {
  const some = await pythonTools();
  const [first] = some;
  if (first === undefined) throw new Error('no tools');
  const tools = [nothing(first.target), ...some];
  const rows = await rounds('inside-python', keyed(tools));
  const asked: Question[] = ['tasks', 'chain', 'parents', 'gil', 'waits', 'container', 'type'];
  const text = page(tools, rows, [...asked, 'place', 'busy']);
  publish(
    'Inside a Python process',
    `One asyncio program (test/targets/python/inside.py): 20 suspended requests three coroutines deep, three of them gathered by a report; \`_store\`, a dict that grows and is never
emptied; a thread that computes and so has the GIL nearly always. ${NOTE}

${text}`,
    'benchmarks.md',
  );
});

it('inside a Node process', async () => {
  const some = await nodeTools();
  const [first] = some;
  if (first === undefined) throw new Error('no tools');
  const tools = [nothing(first.target), ...some];
  const rows = await rounds('inside-node', keyed(tools));
  const text = page(tools, rows, ['container', 'type', 'place', 'busy']);
  publish(
    'Inside a Node process',
    `A Map \`app.cache.store\` that grows by up to 20,000 entries a second, and a function that computes for some 2 ms of every turn (test/targets/node/inside.js). memlab reads snapshots
of V8's heap, which something else has to take: during each the process stands still, which is seen in how late its loop is and not as stopped. ${NOTE}

${text}`,
    'benchmarks.md',
  );
});
