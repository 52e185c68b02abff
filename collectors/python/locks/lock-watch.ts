import { setTimeout as sleep } from 'node:timers/promises';
import type { LockLook } from '../../../src/core/lock-look.ts';
import { SNAPSHOT } from '../../../src/core/semconv.ts';
import type {
  Availability,
  Collector,
  Metric,
  Observation,
  ObserveContext,
  ProcessTarget,
  Ratio,
  Seconds,
} from '../../../src/core/types.ts';
import { openPython, type PythonReader } from '../reader.ts';
import { lockGraph, type Waiting } from './lock-graph.ts';
import { ThreadLook, type ThreadState } from './thread-look.ts';

/**
 * Which threads stand still waiting for one another. What each thread is doing is read often and costs two small files a thread; frames and
 * what they hold are read only when one has not moved for seconds.
 */

/** Between two readings of what the threads do, at least. */
const EVERY: Seconds = 0.5;
/** Share of a core that looking may take: a process of many threads is looked at less often. */
const SHARE: Ratio = 0.005;
const LONGEST_PAUSE: Seconds = 10;
/** A thread that waits without a time-out and has not run for so long is looked into. Locks are held for milliseconds. */
const STILL_FOR: Seconds = 1.5;
/** The same standstill is written down again after so long. */
const REPEAT_AFTER: Seconds = 3;
/** Threads looked into at once; of 500 that wait for the same, these tell. */
const DEEP = 128;

interface Standing {
  readonly key: string;
  readonly since: Seconds;
}

export class LockWatch implements Collector<ProcessTarget> {
  readonly name = 'locks';
  readonly metrics: readonly Metric[] = [];
  #reader: PythonReader | null = null;
  #standing = new Map<number, Standing>();
  #written = { key: '', at: 0 };

  async probe({ pid }: ProcessTarget): Promise<Availability> {
    const opened = openPython(pid);
    if (!opened.ok) return { available: false, reason: opened.reason, remedy: opened.remedy };
    this.#reader = opened.reader;
    return { available: true };
  }

  async *observe(
    { pid }: ProcessTarget,
    { signal, clock }: ObserveContext,
  ): AsyncIterable<Observation> {
    const reader = this.#reader;
    if (reader === null) return;
    try {
      const look = ThreadLook.of(reader);
      if (look === null) return;
      for (let pause = EVERY; !signal.aborted;) {
        await sleep(pause * 1e3, undefined, { signal }).catch(() => {});
        const from = clock.mono();
        const body = this.#look(look, pid, clock.now());
        if (body !== null) yield { kind: 'snapshot', at: clock.now(), of: SNAPSHOT.locks, body };
        pause = Math.min(LONGEST_PAUSE, Math.max(EVERY, (clock.mono() - from) / SHARE));
      }
    } finally {
      reader.close();
    }
  }

  /** Null when nobody stands, or it has been written down. */
  #look(look: ThreadLook, pid: number, now: Seconds): LockLook | null {
    const states = look.begin();
    this.#follow(states, now);
    const stuck = states.filter((state) => this.#isStuck(state, now));
    const key = stuck.map(({ tid, call }) => `${tid} ${call.futex}`).join('\n');
    if (stuck.length === 0) return null;
    if (key === this.#written.key && now - this.#written.at < REPEAT_AFTER) return null;
    this.#written = { key, at: now };
    const isStuck = new Set(stuck);
    const others = states.filter((state) => !isStuck.has(state));
    const waiting: readonly Waiting[] = [...stuck, ...others].slice(0, DEEP).flatMap((state) => {
      const thread = look.still(state);
      return thread === null
        ? []
        : [{ thread, since: this.#standing.get(state.tid)?.since ?? now }];
    });
    const graph = lockGraph(look, waiting, { pid, threads: states.length });
    return graph.objects.length === 0 ? null : graph;
  }

  #follow(states: readonly ThreadState[], now: Seconds): void {
    const next = new Map<number, Standing>();
    for (const { tid, call } of states) {
      const key = `${call.kind} ${call.futex} ${call.cpuNs}`;
      const known = this.#standing.get(tid);
      next.set(tid, known?.key === key ? known : { key, since: now });
    }
    this.#standing = next;
  }

  #isStuck({ tid, call, awaitsGil }: ThreadState, now: Seconds): boolean {
    if (call.kind !== 'futex' || awaitsGil || call.isTimed) return false;
    return now - (this.#standing.get(tid)?.since ?? now) >= STILL_FOR;
  }
}
