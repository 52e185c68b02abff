import { readFileSync } from 'node:fs';
import type { Seconds } from '../../src/core/types.ts';

/** A block as the target itself logged it; times are CLOCK_MONOTONIC. */
export interface TruthBlock {
  readonly kind: string;
  /** Nominal milliseconds, as planned. */
  readonly ms: number;
  readonly function: string;
  readonly start: Seconds;
  readonly end: Seconds;
  /** Time on a core during the block. */
  readonly cpu: Seconds;
  /** Time runnable and waiting for a core during the block. */
  readonly wait: Seconds;
}

interface TruthLine {
  readonly type: string;
  readonly kind: string;
  readonly ms: number;
  readonly function: string;
  readonly start_ns: number;
  readonly end_ns: number;
  readonly cpu_ns: number;
  readonly wait_ns: number;
}

/** The blocks of a target's truth log. A line cut by the target's death is left out. */
export function readTruth(path: string): TruthBlock[] {
  return readFileSync(path, 'utf8')
    .split('\n')
    .slice(0, -1)
    .map((line) => JSON.parse(line) as TruthLine)
    .filter((line) => line.type === 'block')
    .map((line) => ({
      kind: line.kind,
      ms: line.ms,
      function: line.function,
      start: line.start_ns / 1e9,
      end: line.end_ns / 1e9,
      cpu: line.cpu_ns / 1e9,
      wait: line.wait_ns / 1e9,
    }));
}
