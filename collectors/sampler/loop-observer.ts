import { FRACTION } from '../../src/core/fraction.ts';
import type { Seconds } from '../../src/core/types.ts';
import type { BlockMessage, Holder, LoopThread, SecondMessage } from './messages.ts';
import { MIDDLE_SHARE, VAGUE_SHARE } from './sampling-period.ts';
import { SecondTally } from './second-tally.ts';
import type { Turn, TurnWatch } from './turn-watch.ts';

/** Watches one thread's loop: turns samples into blocks, and a second's samples into an aggregate. */

/** Stacks are taken from half the threshold on: later misses the short blocks, earlier pays for turns that are fine. */
const CAPTURE_FROM: number = 0.5;
/** And then every 10 ms, so that a block of 60 ms has four. */
const CAPTURE_EVERY: Seconds = 0.01;
/** A block this old changes slowly: its stack is taken, and its end watched, at the slow rate. */
const OLD_BLOCK: Seconds = 1;
const CAPTURE_OLD_EVERY: Seconds = 0.1;
/**
 * And it must have been *seen* to last at least this share: a gap between two samples makes any turn in it possibly long. A block at the
 * threshold, caught between samples 12 ms apart, is still seen for 36 of its 50 ms.
 */
const SEEN_SHARE: number = 0.5;
/** Every wake-up waits a little; only from this share of a turn on can the wait be what made it long. */
const NOTABLE_WAIT: number = 0.1;
/** A turn that waited for a core this much of its time is called starved where the exact part cannot be told. */
const STARVED_SHARE: number = 0.5;
/**
 * What is left of a turn that waited for most of its time must exceed the threshold by this: the wait is known from the last sample before
 * it on only, and what is left comes out too long by some milliseconds (a turn of 240 ms that waited for 191 and computed for 52 was called a
 * block of 50 on a fixed release of the bug bench, load 10 on two cores).
 */
const MOSTLY_WAITED_MARGIN: number = 1.15;
/**
 * A turn that was looked at less than half as often as was meant, give or take a look, fell into a stretch in which the sampler, which asks
 * for a higher priority than any program has, got no core either.
 */
const LATE_LOOKS: number = 0.5;
const LOOKS_MISSED = 1;
/** And that was on a core for no more than this was not computing: with 25 threads for two cores, turns of 80 to 510 ms had 0.3 to 0.9 ms. */
const HARDLY_ON_CPU: number = 0.1;
/**
 * A turn that waits for another thread (a lock, the GIL, a message port, V8's helpers) is held up by the machine where that thread waits for a
 * core for this share of it, and what is left without its wait is no block: the main thread of a pool of workers stood still for 40 to
 * 245 ms while its one worker, with the lock of their port, was runnable for all of it (25 threads for two cores).
 */
const HOLDER_WAITED: number = 0.5;
/** Between two readings of what the other threads waited, at least: half a millisecond with 64 of them, twice a turn. */
const OTHERS_EVERY: Seconds = 0.25;
/** The calls in which a turn waits for another thread, and none. */
const WAITS_FOR_THREADS: ReadonlySet<string> = new Set(['futex', 'gil', 'running']);
/** A reading of the kernel's counts this old still stands for "the sample before". */
const RECENT: Seconds = 0.03;
/** That a process has ended is found at the end of a second: a loop that was lost earlier had ended before it. */
const FOUND_GONE_WITHIN: Seconds = 2;
/** Descriptor targets kept with a block. */
const FILE_LIMIT = 4;
/** Different stacks of threads that had the interpreter's lock, kept with a block. */
const HOLDER_LIMIT = 32;

/** The kernel's view of one thread. */
export interface ThreadReadings {
  /** Reads schedstat; false when the thread is gone. */
  refresh(): boolean;
  /** Total time on a core, and runnable without one, as of the last refresh. */
  readonly cpu: Seconds;
  readonly wait: Seconds;
  /** Whether the thread has slept since the last time this was asked and after it, by the kernel's count of its turns on a core. */
  staysAsleep(): boolean;
  /** How long each other thread of the process has been runnable without a core in all, by its id; empty where nobody can say. */
  othersWaits(): ReadonlyMap<number, Seconds>;
  /** The system call the thread is in (`running` when in none) and what its first argument, a descriptor, points to. */
  syscall(): { readonly name: string; readonly file: string | null };
}

/** Reads this thread's stack and returns its id; null when it could not be read soundly (counted by the reader). */
export type CaptureStack = () => string | null;

/** A block that was cut short when the loop could not be read any more. */
interface Cut {
  readonly at: Seconds;
  readonly block: BlockMessage | null;
}

/** What keeps the thread where that is the interpreter. */
export type FindHoldUp = () =>
  | { readonly kind: 'gil'; readonly thread: string; readonly stack: string | null }
  | { readonly kind: 'gc' }
  | null;

/** A turn that is under way: made for each turn seen, so it holds next to nothing. */
interface OpenTurn {
  readonly turnId: number;
  /** The kernel's counts when the turn was first known to last. */
  readonly cpuFirst: Seconds;
  readonly waitFirst: Seconds;
  /** The wait at the sample before, where it was read then. */
  readonly waitBefore: Seconds;
  /** What was seen in it; null until it has lasted long enough to be looked at. */
  seen: Sightings | null;
}

/** What a lasting turn was found doing. */
interface Look {
  readonly syscall: string;
  readonly file: string | null;
  readonly stack: string | null;
  readonly holder: Omit<Holder, 'weight'> | null;
}

interface Sightings {
  /** Whether the identity was found on the live stack: a loop that has ended leaves its last frame in memory. */
  readonly live: boolean;
  at: Seconds;
  readonly stacks: Map<string, Seconds>;
  readonly syscalls: Map<string, number>;
  readonly files: Set<string>;
  readonly holders: Map<string, Holder>;
  /** What the other threads had waited for a core when it was first found waiting for one of them; null where it was not, or not asked. */
  othersBefore: ReadonlyMap<number, Seconds> | null;
}

export class LoopObserver {
  readonly thread: LoopThread;
  readonly #watch: TurnWatch;
  readonly #readings: ThreadReadings;
  readonly #capture: CaptureStack | null;
  readonly #holdUp: FindHoldUp | null;
  readonly #threshold: Seconds;
  readonly #raw: boolean;
  #open: OpenTurn | null = null;
  #refreshedAt: Seconds = FRACTION;
  #othersAt: Seconds = Number.NEGATIVE_INFINITY;
  /** The last look at the present turn, while the thread is known not to have run since. */
  #look: Look | null = null;
  /** What the turn had come to when the loop could first not be read; null while it can. */
  #cut: Cut | null = null;
  #second: SecondTally;
  #saturated = false;

  constructor(options: {
    thread: LoopThread;
    watch: TurnWatch;
    readings: ThreadReadings;
    capture: CaptureStack | null;
    holdUp: FindHoldUp | null;
    threshold: Seconds;
    raw: boolean;
    at: Seconds;
  }) {
    this.thread = options.thread;
    this.#watch = options.watch;
    this.#readings = options.readings;
    this.#capture = options.capture;
    this.#holdUp = options.holdUp;
    this.#threshold = options.threshold;
    this.#raw = options.raw;
    this.#readings.refresh();
    this.#second = new SecondTally(options.at, options.watch, options.readings);
  }

  /**
   * One sample; gives a block that ended, null mostly. The common case, an idle loop, touches nothing but the identity: between two
   * samples our code has left the processor's caches, and every further step costs there what it never costs in a benchmark.
   */
  sample(at: Seconds): BlockMessage | null {
    const watch = this.#watch;
    if (this.#sleepsOn()) watch.stay(at);
    else {
      this.#look = null;
      watch.sample(at);
    }
    if (!watch.lost) this.#cut = null;
    else this.#cut ??= { at, block: this.#unfinished(at) };
    const message = this.#open === null && watch.idle ? this.#takeUnseen() : this.#followTurn(at);
    this.#second.count(at, this.#raw);
    if (this.#saturated && this.#capture !== null) this.#second.sampleStack(at, this.#capture);
    return message;
  }

  /** Something ran at the last sample: it may last. */
  get busy(): boolean {
    return !this.#watch.idle;
  }

  /** The present turn has been seen more than once: sample fast until it ends. */
  get following(): boolean {
    return !this.#watch.idle && this.#watch.age > 0 && this.#watch.age < OLD_BLOCK;
  }

  /** The block still going on when the run ends, null when there is none. */
  endOpen(): BlockMessage | null {
    return this.#unfinished(null);
  }

  /** The block that was going on when the process ended, which was found at `at`; null when there is none. */
  endGone(at: Seconds): BlockMessage | null {
    const cut = this.#cut;
    if (cut === null) return this.#unfinished(at);
    return at - cut.at <= FOUND_GONE_WITHIN ? cut.block : null;
  }

  /** The present turn as if it had ended by `at`, or at its last sample. */
  #unfinished(at: Seconds | null): BlockMessage | null {
    const open = this.#watch.openTurn();
    if (open === null) return null;
    const turn = at === null ? open : { ...open, endMax: Math.max(open.endMax, at) };
    // Off its core outside any call, and to the very end: a process that is being taken apart stands still for good.
    const calls = [...(this.#open?.seen?.syscalls.keys() ?? [])];
    if (calls.length > 0 && calls.every((name) => name === 'blocked')) return null;
    this.#readings.refresh();
    return this.#finish(turn, true);
  }

  /** What was seen since the last call; null when the thread is gone. */
  drainSecond(at: Seconds): SecondMessage | null {
    if (!this.#readings.refresh()) return null;
    const second = this.#second.drain(at, this.thread);
    this.#saturated = second.activity !== null;
    this.#second = new SecondTally(at, this.#watch, this.#readings);
    return second;
  }

  /**
   * Whether a turn that was seen to last goes on in its sleep. Then nothing of the target's memory need be read: each reading holds up
   * its memory map for a moment (most blocks are waits: sleep, files, network, locks, children).
   */
  #sleepsOn(): boolean {
    const watch = this.#watch;
    return !watch.idle && !watch.lost && watch.age > 0 && this.#readings.staysAsleep();
  }

  /** A turn that began and ended between two samples; only a loop that stamps its turns shows those. */
  #takeUnseen(): BlockMessage | null {
    const closed = this.#watch.takeClosed();
    if (closed === null) return null;
    this.#readings.refresh();
    return this.#finish(closed, false);
  }

  #followTurn(at: Seconds): BlockMessage | null {
    const watch = this.#watch;
    const closed = watch.takeClosed();
    let message: BlockMessage | null = null;
    if (closed !== null) {
      this.#readings.refresh();
      message = this.#finish(closed, false);
      if (this.#cut !== null) this.#cut = { at, block: null };
    }
    if (this.#open !== null && (watch.idle || watch.turnId !== this.#open.turnId))
      this.#open = null;
    if (watch.idle) return message;
    if (this.#open === null) this.#begin(at);
    this.#follow(at);
    return message;
  }

  #begin(at: Seconds): void {
    const before = this.#readings.wait;
    const isRecent = at - this.#refreshedAt < RECENT;
    this.#readings.refresh();
    this.#refreshedAt = at;
    const { cpu, wait } = this.#readings;
    this.#open = {
      turnId: this.#watch.turnId,
      cpuFirst: cpu,
      waitFirst: wait,
      waitBefore: isRecent ? before : wait,
      seen: null,
    };
  }

  /** Looks at what a lasting turn does, every 10 ms: its stack, and the system call it is in. */
  #follow(at: Seconds): void {
    const open = this.#open;
    const { age } = this.#watch;
    if (open === null || this.#cut !== null || age < this.#threshold * CAPTURE_FROM) return;
    const every = age < OLD_BLOCK ? CAPTURE_EVERY : CAPTURE_OLD_EVERY;
    if (open.seen !== null && at - open.seen.at < every) return;
    // The first look stands for all the time before it: nothing was seen of that.
    const weight = open.seen === null ? age : at - open.seen.at;
    const seen = (open.seen ??= {
      live: this.#watch.confirm(),
      at,
      stacks: new Map(),
      syscalls: new Map(),
      files: new Set(),
      holders: new Map(),
      othersBefore: null,
    });
    seen.at = at;
    const { syscall, file, stack, holder } = (this.#look ??= this.#lookNow());
    seen.syscalls.set(syscall, (seen.syscalls.get(syscall) ?? 0) + 1);
    const waits = syscall === 'futex' || syscall === 'gil';
    if (waits && seen.othersBefore === null && at - this.#othersAt >= OTHERS_EVERY) {
      this.#othersAt = at;
      seen.othersBefore = this.#readings.othersWaits();
    }
    if (file !== null && seen.files.size < FILE_LIMIT) seen.files.add(file);
    if (stack !== null) seen.stacks.set(stack, (seen.stacks.get(stack) ?? 0) + weight);
    if (holder === null) return;
    const key = `${holder.stack ?? ''} ${holder.thread}`;
    const held = seen.holders.get(key);
    if (held !== undefined) held.weight += weight;
    else if (seen.holders.size < HOLDER_LIMIT) seen.holders.set(key, { ...holder, weight });
  }

  #lookNow(): Look {
    const { name, file } = this.#readings.syscall();
    // What a thread is found in while it computes or waits for a lock may be the interpreter's doing.
    const found = name === 'running' || name === 'futex' ? (this.#holdUp?.() ?? null) : null;
    return {
      syscall: found?.kind ?? name,
      file,
      stack: this.#capture?.() ?? null,
      holder: found?.kind === 'gil' ? found : null,
    };
  }

  /** Whether a turn, of `length` without its own wait for a core, did nothing but wait for another thread which got none meanwhile. */
  #waitedForStarved(seen: Sightings | null, length: Seconds): boolean {
    const before = seen?.othersBefore ?? null;
    if (seen === null || before === null) return false;
    if ([...seen.syscalls.keys()].some((name) => !WAITS_FOR_THREADS.has(name))) return false;
    const now = this.#readings.othersWaits();
    return [...before].some(([tid, first]) => {
      const waited = (now.get(tid) ?? first) - first;
      return (
        waited >= length * HOLDER_WAITED && length - waited < this.#threshold * MOSTLY_WAITED_MARGIN
      );
    });
  }

  #finish(turn: Turn, open: boolean): BlockMessage | null {
    const longest = turn.endMax - turn.startMin;
    const shortest = Math.max(0, turn.endMin - turn.startMax);
    if (longest < this.#threshold) return null;
    if (shortest < this.#threshold * SEEN_SHARE) return null;
    const isVague = longest - shortest > this.#threshold * VAGUE_SHARE;
    const likely = isVague ? shortest : (longest + shortest) / 2;
    if (likely < this.#threshold * MIDDLE_SHARE) return null;
    const block = this.#open;
    const seen = block?.seen ?? null;
    if (seen?.live === false) return null;
    const { cpu, wait } = this.#readings;
    // Waiting is credited when the thread gets its core, so what was credited after a sample within the turn is the part that certainly
    // belongs to it. Seen by counters only, the turn has no such sample, and the second's count bounds it.
    const waited = Math.min(longest, Math.max(0, wait - (block?.waitFirst ?? this.#second.wait)));
    // What was credited between the sample before and that one may belong to it too; it decides where waiting was most of the turn.
    const atMost = Math.min(longest, Math.max(0, wait - (block?.waitBefore ?? this.#second.wait)));
    // What is left without the wait must itself be a block.
    const isShort =
      longest - waited < this.#threshold ||
      likely - waited <
        this.#threshold * (waited >= likely * STARVED_SHARE ? MOSTLY_WAITED_MARGIN : MIDDLE_SHARE);
    const onCpu = Math.min(longest, Math.max(0, cpu - (block?.cpuFirst ?? this.#second.cpu)));
    const starved =
      (isShort && waited >= likely * NOTABLE_WAIT) ||
      (longest - atMost < this.#threshold && atMost >= longest * STARVED_SHARE) ||
      (onCpu < Math.min(this.#threshold, likely * HARDLY_ON_CPU) &&
        this.#waitedForStarved(seen, likely - waited)) ||
      // The kernel credits a wait late and in part. Not by the thread's own counts alone: a loop that reads from a disk also shows little CPU.
      (cpu > 0 &&
        onCpu < Math.min(this.#threshold, likely * HARDLY_ON_CPU) &&
        wasMissed(seen, likely, this.#threshold * CAPTURE_FROM));
    return {
      thread: this.thread,
      basis: this.#watch.basis,
      turn,
      onCpu,
      runQueueWait: waited,
      starved,
      open,
      stacks: seen?.stacks ?? new Map<string, Seconds>(),
      syscalls: seen?.syscalls ?? new Map<string, number>(),
      files: [...(seen?.files ?? [])],
      holders: [...(seen?.holders.values() ?? [])],
    };
  }
}

/** Whether a turn ran at every look, and was looked at so rarely that the machine held up the sampler too. */
function wasMissed(seen: Sightings | null, length: Seconds, from: Seconds): boolean {
  if (seen === null || [...seen.syscalls.keys()].some((name) => name !== 'running')) return false;
  const looks = seen.syscalls.get('running') ?? 0;
  const young = Math.min(length, OLD_BLOCK) - from;
  const meant = young / CAPTURE_EVERY + Math.max(0, length - OLD_BLOCK) / CAPTURE_OLD_EVERY;
  return looks < LATE_LOOKS * (meant - LOOKS_MISSED);
}
