import { describe, expect, it } from 'vitest';
import { LoopObserver } from '../../../collectors/sampler/loop-observer.ts';
import type { BlockMessage } from '../../../collectors/sampler/messages.ts';
import { AsyncioWatch, type RunOnceReading } from '../../../collectors/sampler/asyncio-watch.ts';

/** One stretch of a simulated thread: a callback, or idling (handle 0), and how much of it was spent waiting for a core. */
interface Stretch {
  readonly from: number;
  readonly to: number;
  readonly handle: number;
  readonly waited?: number;
  /** It sleeps from its second sample on, as in `time.sleep` or a read from a disk. */
  readonly asleep?: boolean;
}

const THREAD = { tid: 1, name: 'main', kind: 'asyncio' } as const;

interface Options {
  readonly live?: boolean;
  /** From then on nothing of the process can be read. */
  readonly dies?: number;
  readonly late?: { readonly at: number; readonly by: number };
  /** What it is found in; `running` by default. */
  readonly syscall?: string;
  /** What it had of a core before, and has of each second from then on; nothing, as where the kernel does not count, by default. */
  /** Another thread, which is runnable without a core for this share of the time. */
  readonly otherWaits?: number;
  readonly cpu?: { readonly before: number; readonly share: number };
}

/** Samples a simulated thread as the sampling loop would and gives the blocks it reports. */
function observe(stretches: readonly Stretch[], options: Options = {}): BlockMessage[] {
  return observeCounted(stretches, options).blocks;
}

/** The same, with how often the target's memory was read: for its turn, and for its stack. */
function observeCounted(
  stretches: readonly Stretch[],
  options: Options = {},
): {
  readonly blocks: BlockMessage[];
  readonly last: (foundAt: number) => BlockMessage | null;
  readonly turnsRead: number;
  readonly stacksRead: number;
} {
  let at = 100;
  let turnsRead = 0;
  let stacksRead = 0;
  let asked: Stretch | undefined;
  const current = (): Stretch | undefined => stretches.find((one) => one.from <= at && at < one.to);
  const read = (): RunOnceReading | null => {
    turnsRead++;
    if (at >= (options.dies ?? Number.POSITIVE_INFINITY)) return null;
    const stretch = current();
    return stretch === undefined || stretch.handle === 0
      ? { handle: 0, index: -1, turnStart: 0 }
      : { handle: stretch.handle, index: 0, turnStart: stretch.from };
  };
  // The kernel credits a wait when the thread gets its core back: here at the end of the stretch.
  const waited = (): number =>
    stretches.reduce((sum, one) => sum + (one.to <= at ? (one.waited ?? 0) : 0), 0);
  const observer = new LoopObserver({
    thread: THREAD,
    watch: new AsyncioWatch({ read, confirm: () => options.live ?? true }),
    readings: {
      refresh: () => true,
      get cpu() {
        const { before = 0, share = 0 } = options.cpu ?? {};
        return before + (at - 100) * share;
      },
      get wait() {
        return waited();
      },
      staysAsleep() {
        const before = asked;
        asked = current();
        return asked?.asleep === true && asked === before;
      },
      othersWaits: () => new Map([[2, 5 + (at - 100) * (options.otherWaits ?? 0)]]),
      syscall: () => ({ name: options.syscall ?? 'running', file: null }),
    },
    capture() {
      stacksRead++;
      return `stack-of-${current()?.handle ?? 0}`;
    },
    holdUp: null,
    threshold: 0.05,
    raw: false,
    at,
  });
  const blocks: BlockMessage[] = [];
  const end = Math.max(...stretches.map((one) => one.to)) + 0.1;
  while (at < end) {
    const block = observer.sample(at);
    if (block !== null) blocks.push(block);
    const { late } = options;
    const before = at;
    at += observer.following ? 0.002 : 0.012;
    if (late !== undefined && before < late.at && at >= late.at) at += late.by;
  }
  return { blocks, last: (foundAt) => observer.endGone(foundAt), turnsRead, stacksRead };
}

describe('LoopObserver', () => {
  it('reports a callback of 60 ms with an interval that holds the truth, and its stack', () => {
    const [block, ...others] = observe([{ from: 100.5, to: 100.56, handle: 7 }]);
    expect(others).toEqual([]);
    expect(block).toMatchObject({ starved: false, open: false });
    const { turn } = block ?? expect.fail('no block');
    expect(turn.endMin - turn.startMax).toBeLessThanOrEqual(0.06);
    expect(turn.endMax - turn.startMin).toBeGreaterThanOrEqual(0.06);
    expect([...(block?.stacks.keys() ?? [])]).toEqual(['stack-of-7']);
  });

  it('finds every one of 1,000 callbacks of 50 ms, wherever the samples fall', () => {
    const stretches = Array.from({ length: 1000 }, (_, i) => {
      const from = 101 + i * 0.21 + (i % 97) / 8000;
      return { from, to: from + 0.0501, handle: i + 1 };
    });
    expect(observe(stretches)).toHaveLength(1000);
  });

  it('reads nothing of a thread that sleeps on, and reports the same', () => {
    const stretches = [60, 75, 80, 400, 1500].map((length, i) => ({
      from: 101 + 3 * i,
      to: 101 + 3 * i + length / 1e3,
      handle: i + 1,
    }));
    const awake = observeCounted(stretches);
    const asleep = observeCounted(stretches.map((stretch) => ({ ...stretch, asleep: true })));
    expect(asleep.blocks).toHaveLength(5);
    expect(asleep.blocks).toEqual(awake.blocks);
    expect(asleep.stacksRead).toBe(5);
    const idle = observeCounted([{ from: 99, to: 114.5, handle: 0 }]).turnsRead;
    expect(awake.turnsRead).toBeGreaterThan(idle + 300);
    expect(asleep.turnsRead).toBeLessThan(idle + 20);
  });

  describe('of a process that was killed', () => {
    const hung = [{ from: 100.5, to: 103.5, handle: 7 }];

    it('has the block that this cut short, to where the loop could be read', () => {
      const { blocks, last } = observeCounted(hung, { dies: 103.499 });
      expect(blocks).toEqual([]);
      const block = last(104) ?? expect.fail('no block');
      expect(block.open).toBe(true);
      expect([...block.stacks.keys()]).toEqual(['stack-of-7']);
      expect(block.turn.endMin - block.turn.startMax).toBeCloseTo(2.99, 1);
      expect(block.turn.endMin).toBeLessThan(103.499);
      expect(block.turn.endMax).toBeGreaterThanOrEqual(103.499);
      expect(block.turn.endMax).toBeLessThan(103.6);
    });

    it('has it once: not also where a row of unreadable samples has ended the callback', () => {
      const { blocks, last } = observeCounted(hung, { dies: 103.4 });
      expect(blocks).toHaveLength(1);
      expect(last(104)).toBeNull();
    });

    it('has none where the loop was idle then, or was lost long before', () => {
      const idle = [
        { from: 100.5, to: 100.52, handle: 7 },
        { from: 100.52, to: 103.5, handle: 0 },
      ];
      expect(observeCounted(idle, { dies: 103.499 }).last(104)).toBeNull();
      expect(observeCounted(hung, { dies: 103.499 }).last(110)).toBeNull();
    });
  });

  it('is silent about a saturated loop whose callbacks take 30 ms each', () => {
    const stretches = Array.from({ length: 200 }, (_, i) => ({
      from: 101 + i * 0.03,
      to: 101 + (i + 1) * 0.03,
      handle: i + 1,
    }));
    expect(observe(stretches)).toEqual([]);
  });

  it('calls a short callback that was preempted starved, not blocked', () => {
    const [block] = observe([{ from: 100.5, to: 100.6, handle: 3, waited: 0.0995 }]);
    expect(block).toMatchObject({ starved: true });
  });

  it('wants more than the threshold of a turn that mostly waited, and the threshold of one that did not', () => {
    const mostly = (own: number) =>
      observe([{ from: 100.5, to: 100.7 + own, handle: 7, waited: 0.2 }])[0]?.starved;
    expect(mostly(0.054)).toBe(true);
    expect(mostly(0.065)).toBe(false);
    const hardly = observe([{ from: 100.5, to: 100.574, handle: 7, waited: 0.02 }])[0];
    expect(hardly?.starved).toBe(false);
  });

  it('calls it starved also when the sampler itself came late on the crowded machine', () => {
    // The turn could have lasted 200 ms for all that was seen; 120 of the 128 ms in the middle were spent waiting.
    const blocks = observe([{ from: 100.5, to: 100.622, handle: 3, waited: 0.12 }], {
      late: { at: 100.56, by: 0.14 },
    });
    expect(blocks).toMatchObject([{ starved: true }]);
  });

  it('calls a turn starved that got no core while the sampler got none, whatever wait the kernel credits', () => {
    const long = [{ from: 100.5, to: 100.7, handle: 3 }];
    const late = { at: 100.55, by: 0.12 };
    const none = { before: 1, share: 0.005 };
    expect(observe(long, { late, cpu: none })).toMatchObject([{ starved: true }]);
    // On time; in a call; at work; where the kernel does not count.
    expect(observe(long, { cpu: none })).toMatchObject([{ starved: false }]);
    expect(observe(long, { late, cpu: none, syscall: 'read' })).toMatchObject([{ starved: false }]);
    expect(observe(long, { late, cpu: { before: 1, share: 1 } })).toMatchObject([
      { starved: false },
    ]);
    expect(observe(long, { late })).toMatchObject([{ starved: false }]);
  });

  it('calls a turn starved that waits for a thread which waits for a core', () => {
    const long = [{ from: 100.5, to: 100.7, handle: 3, asleep: true }];
    const seen = (syscall: string, otherWaits: number, share = 0.005) =>
      observe(long, { syscall, otherWaits, cpu: { before: 1, share } })[0]?.starved;
    expect(seen('futex', 0.95)).toBe(true);
    expect(seen('gil', 0.95)).toBe(true);
    // The others run or sleep, or what they had of a core was long enough; it waits for something else; it computes.
    expect(seen('gil', 0.6)).toBe(false);
    expect(seen('futex', 0.2)).toBe(false);
    expect(seen('read', 0.95)).toBe(false);
    expect(seen('futex', 0.95, 0.9)).toBe(false);
  });

  it('does not guess how long a turn lasted that it saw too little of', () => {
    // Seen for 30 ms, then the sampler came 200 ms late.
    const late = { at: 100.54, by: 0.2 };
    expect(observe([{ from: 100.5, to: 100.545, handle: 3 }], { late })).toEqual([]);
  });

  it('still calls it blocked when what is left without the wait reaches the threshold', () => {
    const [block] = observe([{ from: 100.5, to: 100.62, handle: 3, waited: 0.05 }]);
    expect(block).toMatchObject({ starved: false });
  });

  it('does not take a short callback for a long one because the sampler came late', () => {
    // 5 ms callbacks in a row; the sampler sleeps through 120 ms of them.
    const stretches = Array.from({ length: 100 }, (_, i) => ({
      from: 100 + i * 0.005,
      to: 100 + (i + 1) * 0.005,
      handle: i + 1,
    }));
    expect(observe(stretches, { late: { at: 100.2, by: 0.12 } })).toEqual([]);
  });

  it('says nothing about the remains of a loop that has ended', () => {
    expect(observe([{ from: 100.5, to: 101, handle: 3 }], { live: false })).toEqual([]);
  });
});
