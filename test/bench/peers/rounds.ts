import { spawn } from 'node:child_process';
import { join } from 'node:path';
import { setTimeout as wait } from 'node:timers/promises';
import { median, quantile } from '../../../src/core/statistics.ts';
import type { Seconds } from '../../../src/core/types.ts';
import type { Running } from '../../targets/harness.ts';
import { type Rate, rateOf } from '../work.ts';
import { type Behind, startTool } from './running.ts';
import type { Tool } from './tools.ts';

/*
 * One target, every tool on it in turn and back again, nothing at both ends and in the middle: what drifts with time falls on all alike.
 * One of the arms is nothing too: what it differs by is the noise (A/A).
 */

/** The reference: no tool. */
const NONE = 'nothing';
/** No tool either, but counted as if it were one. */
export const AA = 'nothing again (A/A)';
/** From the start of a tool to what is measured: trace, the slowest, is up after half a second. */
const SETTLE_S: Seconds = 1.2;
const SLOT_S: Seconds = 1.2;

const orderOf = (arms: readonly string[]): readonly string[] => [
  NONE,
  ...arms,
  NONE,
  ...arms.toReversed(),
  NONE,
];

/** Seconds that a round over so many tools takes at the most, so that a target lives through it. */
export const roundLimit = (tools: number): Seconds => orderOf(Array(tools + 1)).length * 6 + 10;

interface Slot<T> {
  readonly arm: string;
  readonly value: T;
}

/** What a round takes in turn. */
export interface Attached {
  readonly tools: readonly Tool[];
  readonly behind: Behind;
}

/** Runs a round: `measure` is called while each tool is at work, with when its slot began and ended in CLOCK_MONOTONIC nanoseconds. */
async function round<T>(
  { tools, behind }: Attached,
  target: Running,
  measure: (lasts: Promise<void>, from: number) => Promise<T>,
): Promise<Slot<T>[]> {
  const slots: Slot<T>[] = [];
  for (const arm of orderOf([AA, ...tools.map(({ name }) => name)])) {
    const tool = tools.find(({ name }) => name === arm);
    const running = tool === undefined ? undefined : startTool(tool, target.pid, behind);
    await wait(SETTLE_S * 1e3);
    const value = await measure(wait(SLOT_S * 1e3), Number(process.hrtime.bigint()));
    await running?.discard();
    slots.push({ arm, value });
  }
  return slots;
}

const valuesOf = <T>(slots: readonly Slot<T>[], arm: string): T[] =>
  slots.filter((slot) => slot.arm === arm).map(({ value }) => value);
const armsOf = (slots: readonly Slot<unknown>[]): string[] =>
  [...new Set(slots.map(({ arm }) => arm))].filter((arm) => arm !== NONE);
const mean = (values: readonly number[]): number =>
  values.reduce((sum, value) => sum + value, 0) / values.length;

/** Relative change of the work done under each arm against nothing. */
export type WorkRow = Readonly<Record<string, Rate>>;

/** By logarithms: a mean of plain ratios of noisy numbers lies above what they are ratios of. */
export function changesOf(slots: readonly Slot<Rate>[]): WorkRow {
  const level = (arm: string, of: keyof Rate): number =>
    mean(valuesOf(slots, arm).map((rate) => Math.log(rate[of])));
  return Object.fromEntries(
    armsOf(slots).map((arm) => [
      arm,
      {
        wall: level(arm, 'wall') - level(NONE, 'wall'),
        cpu: level(arm, 'cpu') - level(NONE, 'cpu'),
      },
    ]),
  );
}

export async function workRound(attached: Attached, target: Running): Promise<WorkRow> {
  return changesOf(
    await round(attached, target, async (lasts, from) => {
      await lasts;
      return rateOf(target, from, Number(process.hrtime.bigint()));
    }),
  );
}

/** The same order where the target itself has to be started under each tool. */
export async function startedRound(
  arms: readonly string[],
  measure: (arm: string) => Promise<Rate>,
): Promise<WorkRow> {
  const slots: Slot<Rate>[] = [];
  for (const arm of orderOf([AA, ...arms])) slots.push({ arm, value: await measure(arm) });
  return changesOf(slots);
}

/** What watch-stops.js saw, in seconds. */
export interface Stops {
  readonly looks: number;
  readonly seconds: Seconds;
  readonly stopped: Seconds;
  readonly stops: number;
  readonly longest: Seconds;
}
export interface PauseSlot {
  readonly arm: string;
  readonly stops: Stops;
  /** How late the target's 1 ms timer was. */
  readonly p50: Seconds;
  readonly p99: Seconds;
  readonly worst: Seconds;
  readonly count: number;
}

/** Looks at the state of a process from another one for so long. */
export function watchStops(pid: number, seconds: Seconds, until?: string): Promise<Stops> {
  const program = join(import.meta.dirname, 'watch-stops.js');
  const args = [program, String(pid), String(seconds), ...(until === undefined ? [] : [until])];
  const child = spawn(process.execPath, args, { stdio: ['ignore', 'pipe', 'inherit'] });
  let text = '';
  child.stdout.setEncoding('utf8').on('data', (part: string) => (text += part));
  return new Promise((resolve, reject) => {
    child.on('error', reject);
    child.on('close', (code) => {
      if (code === 0) resolve(JSON.parse(text) as Stops);
      else reject(new Error(`watch-stops.js ended with ${String(code)}`));
    });
  });
}

interface Beats {
  readonly start_ns: number;
  readonly end_ns: number;
  readonly late_us: readonly number[];
}

export async function pauseRound(
  attached: Attached,
  target: Running,
): Promise<readonly PauseSlot[]> {
  const slots = await round(attached, target, async (lasts, from) => {
    // Over before the slot is, so that starting this watcher's process lies inside of it too.
    const stops = await watchStops(target.pid, SLOT_S * 0.9);
    await lasts;
    const to = Number(process.hrtime.bigint());
    const late = target.lines
      .filter((line) => line.startsWith('{'))
      .map((line) => JSON.parse(line) as Beats)
      .filter(({ start_ns: start, end_ns: end }) => start >= from && end <= to)
      .flatMap(({ late_us: each }) => each);
    const sorted = Float64Array.from(late, (us) => us / 1e6).sort();
    return {
      stops,
      p50: quantile(sorted, 0.5),
      p99: quantile(sorted, 0.99),
      worst: quantile(sorted, 1),
      count: sorted.length,
    };
  });
  return slots.map(({ arm, value }) => ({ arm, ...value }));
}

/** Every slot of an arm over all rounds as one: sums and maxima of the stops, medians of the delays. */
export function pooled(slots: readonly PauseSlot[]): Omit<PauseSlot, 'arm'> & { n: number } {
  const of = (pick: (slot: PauseSlot) => number): number[] => slots.map(pick);
  const sum = (pick: (slot: PauseSlot) => number): number => of(pick).reduce((a, b) => a + b, 0);
  return {
    n: slots.length,
    stops: {
      looks: sum(({ stops }) => stops.looks),
      seconds: sum(({ stops }) => stops.seconds),
      stopped: sum(({ stops }) => stops.stopped),
      stops: sum(({ stops }) => stops.stops),
      longest: Math.max(...of(({ stops }) => stops.longest)),
    },
    p50: median(of((slot) => slot.p50)),
    p99: median(of((slot) => slot.p99)),
    worst: Math.max(...of((slot) => slot.worst)),
    count: sum((slot) => slot.count),
  };
}
