import { get } from 'node:http';
import { spawn } from 'node:child_process';
import { setTimeout as wait } from 'node:timers/promises';
import { median } from '../../../src/core/statistics.ts';
import type { Seconds } from '../../../src/core/types.ts';
import { KINDS, startTarget } from '../../targets/harness.ts';
import { type Score, score, type SeenSpan } from '../../truth/score.ts';
import type { TruthBlock } from '../../truth/truth.ts';
import { setting } from '../measurements.ts';
import { type Behind, startTool } from './running.ts';
import { type Stops, watchStops } from './rounds.ts';
import type { Asked, Runtime, Tool } from './tools.ts';

/* A tool on a service with planted blocks: what its output shows of them, and what it costs itself meanwhile. */

const DURATIONS_MS = [20, 60, 80, 120, 200];
/** The same stretch for accuracy and own CPU, in windows whose median is told. */
export const WATCH_S: Seconds = setting('TRACEWRIGHT_BENCH_PEER_S', 15);
const WINDOWS = 3;
const SETTLE_S: Seconds = 2;

export interface WatchRow {
  readonly tool: string;
  /** Share of a core, least, median and most of the windows. */
  readonly cpu: readonly number[];
  readonly score: Pick<
    Score,
    'atLeast60' | 'from50to60' | 'below50' | 'inGap' | 'starvedBlocks'
  > & {
    readonly falseSpans: number;
    /** Stretches over several blocks, which tell none of them: in none of the tallies. */
    readonly merged: number;
  };
}

/** A stretch tells of a block when it covers this much of it, as in test/truth/score.ts. */
const covers = (span: SeenSpan, { start, end }: TruthBlock): boolean =>
  Math.min(end, span.to) - Math.max(start, span.from) >= 0.5 * (end - start);

export interface WatchCase {
  readonly tool: Tool;
  readonly runtime: Runtime;
  readonly saturated: boolean;
}

export async function watch(
  { tool, runtime, saturated }: WatchCase,
  behind: Behind,
): Promise<WatchRow> {
  const seconds = SETTLE_S + WATCH_S + 10;
  const target = await startTarget(runtime === 'python' ? 'asyncio' : 'node-http', {
    kinds: KINDS,
    durations: DURATIONS_MS,
    reps: 1000,
    startS: 0,
    seconds,
    saturated,
    seed: saturated ? 2 : 1,
    behind,
  });
  try {
    const running = startTool(tool, target.pid, behind);
    await wait(SETTLE_S * 1e3);
    const from = performance.now();
    const begin = Number(process.hrtime.bigint()) / 1e9;
    const cpu: number[] = [];
    let before = { at: from, cpu: running.cpu() };
    for (let window = 1; window <= WINDOWS; window++) {
      await wait(from + (window * WATCH_S * 1e3) / WINDOWS - performance.now());
      const now = { at: performance.now(), cpu: running.cpu() };
      cpu.push((now.cpu - before.cpu) / ((now.at - before.at) / 1e3));
      before = now;
    }
    const end = Number(process.hrtime.bigint()) / 1e9;
    const spans = (await running.stop(() => target.truth())).filter(
      (span) => span.from < end && span.to > begin,
    );
    const truth = target.truth();
    const single = spans.filter((span) => truth.filter((block) => covers(span, block)).length < 2);
    const { atLeast60, from50to60, below50, inGap, starvedBlocks, falseSpans } = score({
      truth,
      spans: single,
      gaps: [],
      anchor: { wall: 0, mono: 0 },
      from: begin,
      to: end,
    });
    const tallies = { atLeast60, from50to60, below50, inGap, starvedBlocks };
    return {
      tool: tool.name,
      cpu: [Math.min(...cpu), median(cpu), Math.max(...cpu)],
      score: {
        ...tallies,
        falseSpans: falseSpans.length,
        merged: spans.length - single.length,
      },
    };
  } finally {
    await target.stop();
  }
}

/** How long the block lasts that a tool is asked in, and when after its start it is asked. */
const ASKED_BLOCK_MS = 900;
const ASKED_AFTER_MS = 200;
const BETWEEN_MS = 150;

export interface AskedRow {
  readonly tool: string;
  readonly kind: string;
  readonly isRight: boolean;
  /** From its start to its end. */
  readonly seconds: Seconds;
  readonly stops: Stops;
}

/** Asks a tool once in a block of each kind, where the target is: right when the function that blocks stands in its answer. */
export async function ask(tool: Asked): Promise<AskedRow[]> {
  const target = await startTarget('asyncio', { kinds: KINDS, startS: 600, seconds: 60 });
  const rows: AskedRow[] = [];
  try {
    for (const kind of KINDS) {
      const done = new Promise<void>((resolve, reject) => {
        const path = `/work?kind=${kind}&ms=${ASKED_BLOCK_MS}`;
        get({ host: '127.0.0.1', port: target.port, path, agent: false }, (response) => {
          response.resume().on('end', () => resolve());
        }).on('error', reject);
      });
      const stops = watchStops(target.pid, ((ASKED_BLOCK_MS - 100) / 1e3) * 0.9);
      await wait(ASKED_AFTER_MS);
      const from = performance.now();
      const text = await output(tool.command(target.pid));
      const seconds = (performance.now() - from) / 1e3;
      const isRight = text.includes(`blocking_${kind}`);
      rows.push({ tool: tool.name, kind, isRight, seconds, stops: await stops });
      await done;
      await wait(BETWEEN_MS);
    }
  } finally {
    await target.stop();
  }
  return rows;
}

function output([command = '', ...args]: readonly string[]): Promise<string> {
  const child = spawn(command, args, { stdio: ['ignore', 'pipe', 'pipe'] });
  let text = '';
  child.stdout.setEncoding('utf8').on('data', (part: string) => (text += part));
  child.stderr.setEncoding('utf8').on('data', (part: string) => (text += part));
  return new Promise((resolve, reject) => {
    child.on('error', reject);
    child.on('close', () => resolve(text));
  });
}
