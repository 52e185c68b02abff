import { readdirSync, readFileSync } from 'node:fs';
import { monotonicNow } from '../../src/core/clock.ts';
import type { Ratio, Seconds } from '../../src/core/types.ts';

/**
 * So much of the time may go into listing threads, where ids are asked for that are not in the list: 10,000 threads take 15 ms, ten
 * times that in a container.
 */
const SHARE: Ratio = 0.01;
/** Less than this is not worth putting off. */
const CHEAP: Seconds = 0.001;

/**
 * Thread ids as the target knows them (the innermost pid namespace) to those of our `/proc`. Outside containers the two are the
 * same, and this is the list of live threads.
 */
export class ThreadIds {
  readonly #pid: number;
  #byInner: ReadonlyMap<number, number> = new Map();
  #nextAt: Seconds = 0;

  constructor(pid: number) {
    this.#pid = pid;
  }

  /** Our id of the target's thread `inner`; null when no such thread is alive, or it is too new to be in a list that takes long to make. */
  toOurs(inner: number): number | null {
    const known = this.#byInner.get(inner);
    if (known !== undefined) return known;
    const from = monotonicNow();
    if (from < this.#nextAt) return null;
    this.#byInner = readThreadIds(this.#pid);
    const to = monotonicNow();
    this.#nextAt = to - from < CHEAP ? 0 : to + (to - from) / SHARE;
    return this.#byInner.get(inner) ?? null;
  }
}

function readThreadIds(pid: number): ReadonlyMap<number, number> {
  const byInner = new Map<number, number>();
  try {
    const isNested = namespaceIds(`/proc/${pid}/status`).length > 1;
    for (const name of readdirSync(`/proc/${pid}/task`)) {
      const ours = Number(name);
      const inner = isNested ? namespaceIds(`/proc/${pid}/task/${name}/status`).at(-1) : ours;
      if (inner !== undefined) byInner.set(inner, ours);
    }
  } catch {
    // The process or a thread ended while it was being listed: what was found by then stands.
  }
  return byInner;
}

/** The NSpid line of a status file: one id a nested namespace, ours first. */
function namespaceIds(path: string): readonly number[] {
  const line = /^NSpid:\s*(.+)$/m.exec(readFileSync(path, 'latin1'))?.[1];
  return line === undefined ? [] : line.trim().split(/\s+/).map(Number);
}
