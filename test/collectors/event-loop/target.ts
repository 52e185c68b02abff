import { spawn, type ChildProcess } from 'node:child_process';
import { once } from 'node:events';
import { join } from 'node:path';
import { createInterface, type Interface } from 'node:readline';
import type { LoopProbe } from '../../../collectors/event-loop/loop-probe.ts';
import type { LoopTurn } from '../../../collectors/event-loop/loop-reading.ts';
import { LoopTurns } from '../../../collectors/event-loop/loop-turn.ts';
import { monotonicNow } from '../../../src/core/clock.ts';
import type { Seconds } from '../../../src/core/types.ts';
import { parseSyscall } from '../../../src/platform/proc-parse.ts';
import { readProc } from '../../../src/platform/proc.ts';

/** Turns this long or longer are reported. */
const FLOOR: Seconds = 0.025;
/** epoll_wait and epoll_pwait on x86-64. */
const EPOLL_CALLS = new Set([232, 281]);

/** A block as the target itself measured it, CLOCK_MONOTONIC. */
export interface TrueBlock {
  readonly kind: string;
  readonly start: Seconds;
  readonly end: Seconds;
}

/** A program of the fixtures folder, running; it waits for `begin`. */
export class BlockingTarget {
  readonly pid: number;
  readonly child: ChildProcess;
  errors = '';
  readonly #lines: Interface;

  private constructor(child: ChildProcess, pid: number, lines: Interface) {
    this.child = child;
    this.pid = pid;
    this.#lines = lines;
    child.stderr?.on('data', (text: Buffer) => {
      this.errors += text.toString();
    });
  }

  static async start(program: string, args: readonly string[]): Promise<BlockingTarget> {
    const child = spawn(program, args, { stdio: ['pipe', 'pipe', 'pipe'] });
    if (child.pid === undefined) throw new Error(`${program} did not start`);
    const lines = createInterface({ input: child.stdout });
    const target = new BlockingTarget(child, child.pid, lines);
    const first = await target.nextLine();
    if (first !== 'ready') throw new Error(`target said ${first}: ${target.errors}`);
    return target;
  }

  async nextLine(): Promise<string> {
    const [line] = (await once(this.#lines, 'line')) as [string];
    return line;
  }

  /** Lets it run; its log arrives when it is done. */
  begin(): Promise<readonly TrueBlock[]> {
    this.child.stdin?.write('\n');
    return this.nextLine().then((line) => JSON.parse(line) as TrueBlock[]);
  }

  stop(): void {
    this.child.kill('SIGKILL');
  }
}

export const fixture = (name: string): string => join(import.meta.dirname, 'fixtures', name);

const sleeper = new Int32Array(new SharedArrayBuffer(4));

/** Blocks this thread, as the sampling worker does: a timer of the test's own loop would be late. */
export function pause(duration: Seconds): void {
  Atomics.wait(sleeper, 0, 0, duration * 1e3);
}

export interface Watched {
  readonly turns: readonly LoopTurn[];
  readonly truth: readonly TrueBlock[];
  /** When the loop was read. */
  readonly readings: readonly Reading[];
  /** `loopCount` of the first and of the last reading. */
  readonly counts: readonly [number, number];
}

/** When one reading was made, and how long the thread has waited for a core up to then. */
export interface Reading {
  readonly at: Seconds;
  readonly to: Seconds;
  readonly waited: Seconds;
}

/** Reads a loop as the sampler does (every 12 ms, every 2 ms while a turn is old) until the target's log arrives. */
export async function watch(
  pid: number,
  probe: LoopProbe,
  log: Promise<readonly TrueBlock[]>,
): Promise<Watched> {
  let truth: readonly TrueBlock[] | null = null;
  void log.then((blocks) => (truth = blocks));
  const closed: LoopTurn[] = [];
  const turns = new LoopTurns({ idleMetrics: probe.idleMetrics, floor: FLOOR });
  const readings: Reading[] = [];
  let counts: [number, number] | null = null;
  while (truth === null) {
    const at = monotonicNow();
    const inPoll = parkedIn(pid, probe.backendFd);
    const reading = probe.read(at);
    if (reading === null) throw new Error('the loop is gone');
    readings.push({ at, to: reading.to, waited: withoutCore(pid) });
    counts = [counts?.[0] ?? reading.loopCount, reading.loopCount];
    turns.observe(reading, inPoll);
    const turn = turns.takeClosed();
    if (turn !== null) closed.push(turn);
    pause(turns.age > 0.02 ? 0.002 : 0.012);
    // Now and then the pipe of the target is looked at.
    if (readings.length % 16 === 0) await new Promise((resolve) => setImmediate(resolve));
  }
  return { turns: closed, truth, readings, counts: counts ?? [0, 0] };
}

/** Whether the main thread is parked in this loop's epoll. */
function parkedIn(pid: number, backendFd: number): boolean {
  const call = parseSyscall(readProc(`/proc/${pid}/task/${pid}/syscall`) ?? '');
  return (
    call?.kind === 'syscall' && EPOLL_CALLS.has(call.number) && call.arguments[0] === backendFd
  );
}

/** Time the thread was ready and had no core: the kernel's run queue, and what the hypervisor took from all cores (10 ms ticks). */
function withoutCore(pid: number): Seconds {
  const [, queued] = (readProc(`/proc/${pid}/task/${pid}/schedstat`) ?? '').split(' ');
  const stolen = (readProc('/proc/stat') ?? '').split('\n')[0]?.trim().split(/\s+/)[8];
  return Number(queued ?? 0) / 1e9 + Number(stolen ?? 0) / 100;
}

/** The reported turn that covers a true block; undefined when none does. */
export function covering(turns: readonly LoopTurn[], block: TrueBlock): LoopTurn | undefined {
  // The log is written inside the turn, so its turn holds the whole of it; 1 ms for the clock's own rounding.
  return turns.find(
    (turn) => turn.startMin <= block.start + 0.001 && turn.endMax >= block.end - 0.001,
  );
}
