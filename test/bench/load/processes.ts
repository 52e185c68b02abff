import { readdirSync, readFileSync } from 'node:fs';
import type { Bytes, Seconds } from '../../../src/core/types.ts';

/** CPU time and memory of a program with all that it started, sampled. */

/** Of the kernel's clock that CPU times are in: 100 a second on every Linux that Node runs on. */
const TICKS_A_SECOND = 100;
const PAGE_BYTES = 4096;
const SAMPLE_MS = 100;

interface Sample {
  readonly at: Seconds;
  readonly cpu: Seconds;
}

export interface Watching {
  /** CPU time that was used between two points of CLOCK_MONOTONIC, between samples by interpolation. */
  cpu(from: Seconds, to: Seconds): Seconds;
  /** Most resident memory at any sample, added up over the processes: what they share counts for each. */
  readonly peakResident: () => Bytes;
  stop(): void;
}

export const monotonic = (): Seconds => Number(process.hrtime.bigint()) * 1e-9;

export function watchTree(root: number): Watching {
  const samples: Sample[] = [];
  let peak = 0;
  const sample = (): void => {
    const pids = treeOf(root);
    samples.push({ at: monotonic(), cpu: sum(pids.map((pid) => cpuOf(pid))) });
    peak = Math.max(peak, sum(pids.map((pid) => residentOf(pid))));
  };
  sample();
  const timer = setInterval(sample, SAMPLE_MS);
  const at = (time: Seconds): Seconds => {
    const after = samples.findIndex((one) => one.at >= time);
    const high = samples[after] ?? samples.at(-1);
    const low = samples[Math.max(0, after - 1)] ?? high;
    if (low === undefined || high === undefined) return Number.NaN;
    if (high.at <= low.at) return high.cpu;
    return low.cpu + ((high.cpu - low.cpu) * (time - low.at)) / (high.at - low.at);
  };
  return {
    cpu: (from, to) => at(to) - at(from),
    peakResident: () => peak,
    stop: () => clearInterval(timer),
  };
}

const sum = (values: readonly number[]): number => values.reduce((a, b) => a + b, 0);

function treeOf(root: number): number[] {
  const parents = new Map<number, number[]>();
  for (const name of readdirSync('/proc')) {
    if (!/^\d+$/.test(name)) continue;
    const parent = Number(statOf(Number(name))?.[1]);
    parents.set(parent, [...(parents.get(parent) ?? []), Number(name)]);
  }
  const found = [root];
  for (const pid of found) found.push(...(parents.get(pid) ?? []));
  return found;
}

/** The fields of /proc/<pid>/stat behind the name: [0] is the state. Null when it has ended. */
function statOf(pid: number): readonly string[] | null {
  try {
    const text = readFileSync(`/proc/${pid}/stat`, 'latin1');
    return text.slice(text.lastIndexOf(')') + 2).split(' ');
  } catch {
    return null;
  }
}

/** User and system time, its own and that of children that have ended. */
function cpuOf(pid: number): Seconds {
  const fields = statOf(pid);
  if (fields === null) return 0;
  return sum(fields.slice(11, 15).map(Number)) / TICKS_A_SECOND;
}

/** CPU time of the children of this process that have ended, with theirs. */
export function cpuOfEnded(): Seconds {
  return sum((statOf(process.pid) ?? []).slice(13, 15).map(Number)) / TICKS_A_SECOND;
}

function residentOf(pid: number): Bytes {
  return Number(statOf(pid)?.[21] ?? 0) * PAGE_BYTES;
}
