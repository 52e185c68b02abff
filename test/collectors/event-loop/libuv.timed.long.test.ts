import { afterEach, describe, expect, it } from 'vitest';
import { openLoopAt, openNodeMainLoop } from '../../../collectors/event-loop/libuv.ts';
import type { LoopProbe } from '../../../collectors/event-loop/loop-probe.ts';
import { findLoopOnStack } from '../../../collectors/event-loop/loop-search.ts';
import { LOOP_TIME_LAG } from '../../../collectors/event-loop/loop-reading.ts';
import { monotonicNow } from '../../../src/core/clock.ts';
import type { Seconds } from '../../../src/core/types.ts';
import { ProcessMemory } from '../../../src/platform/memory.ts';
import { interpreters, nodes, pythonEnvironment } from '../../environments.ts';
import { FULL } from '../../programs.ts';
import {
  BlockingTarget,
  covering,
  fixture,
  pause,
  watch,
  type TrueBlock,
  type Watched,
} from './target.ts';

const BLOCK: Seconds = 0.06;
/** A third of them in `npm test`, which should be over in minutes. */
const BLOCKS = FULL ? 21 : 9;
/** Truth and reports come from the same clock; this is for what lies between the two stamps of one moment. */
const ROUNDING: Seconds = 0.0002;

const open: { close(): void }[] = [];
afterEach(() => {
  for (const one of open.splice(0)) one.close();
});

async function start(program: string, args: readonly string[]): Promise<BlockingTarget> {
  const target = await BlockingTarget.start(program, args);
  open.push({ close: () => target.stop() });
  return target;
}

function memoryOf(pid: number): ProcessMemory {
  const memory = new ProcessMemory(pid);
  open.push(memory);
  return memory;
}

function openedLoop(pid: number): LoopProbe {
  const result = openNodeMainLoop(pid, memoryOf(pid));
  if (!result.ok) throw new Error(result.reason);
  return result.loop;
}

/**
 * Every block was seen, and the bounds given for it are true and as tight as the readings allow: it is known to go on from 2 ms after its
 * start at the latest (the resolution of the loop's clock) to the last reading that fell into it.
 */
function expectTruthful({ turns, truth, readings }: Watched): void {
  expect(truth).toHaveLength(BLOCKS);
  // On a crowded machine the reader itself may be kept from a core for most of a block; the sampler records that as a gap.
  const within = (block: TrueBlock): Watched['readings'] =>
    readings.filter(({ at, to }) => at > block.start && to < block.end);
  const looked = truth.filter((block) => within(block).length >= 2);
  expect(looked.length).toBeGreaterThan(BLOCKS / 2);
  for (const block of looked) {
    const turn = covering(turns, block);
    expect(turn, `block at ${block.start} (${block.kind})`).toBeDefined();
    if (turn === undefined) continue;
    expect(turn.startMax).toBeLessThan(block.start + LOOP_TIME_LAG + ROUNDING);
    expect(turn.endMin).toBeGreaterThan((within(block).at(-1)?.at ?? 0) - ROUNDING);
  }
}

function startNode(path: string, mode: string, kinds: readonly string[]): Promise<BlockingTarget> {
  return start(path, [fixture('node-blocks.cjs'), mode, `${BLOCKS}`, `${BLOCK}`, ...kinds]);
}

describe.each(await nodes())('the main loop of Node $version', ({ path }) => {
  it('times planted blocks of an idle server to within 2 ms, for libuv stamps both their ends', async () => {
    const target = await startNode(path, 'parked', ['spinning', 'sleeping']);
    const loop = openedLoop(target.pid);
    expect(loop.idleMetrics).toBe(true);
    const watched = await watch(target.pid, loop, target.begin());
    expectTruthful(watched);
    const exact = watched.truth
      .map((block) => ({ block, turn: covering(watched.turns, block) }))
      .filter(({ turn }) => turn?.exact);
    // Where V8 compiled what was hot meanwhile, its news is waiting and the next poll does not wait: no exact end.
    expect(exact.length).toBeGreaterThanOrEqual(BLOCKS / 3);
    for (const { block, turn } of exact) {
      const reported = (turn?.endMax ?? 0) - (turn?.startMin ?? 0);
      // What the turn runs beside the block itself (the timer's own code, the log) is in the reported time and not in the log's.
      expect(reported - (block.end - block.start)).toBeLessThan(0.002);
    }
  });

  it.each(['parked', 'saturated'])(
    'sees each planted block of a %s server, execFileSync with its nested loop among them',
    async (mode) => {
      const target = await startNode(path, mode, ['spinning', 'sleeping', 'executing']);
      const watched = await watch(target.pid, openedLoop(target.pid), target.begin());
      expectTruthful(watched);
      expect(new Set(watched.truth.map(({ kind }) => kind))).toContain('executing');
    },
  );

  it('sees a saturated server turn, and never calls it blocked', async () => {
    const target = await start(path, [fixture('node-blocks.cjs'), 'healthy', '0', '3']);
    const watched = await watch(target.pid, openedLoop(target.pid), target.begin());
    const [first, last] = watched.counts;
    expect(last - first).toBeGreaterThan(100);
    for (const turn of watched.turns) {
      // A machine short of cores stretches a turn, and the kernel says by how much.
      const before = watched.readings.findLast(({ at }) => at <= turn.startMin);
      const after = watched.readings.find(({ at }) => at >= turn.endMax);
      const starved = (after?.waited ?? 0) - (before?.waited ?? 0);
      // What the hypervisor takes is in nobody's count: the bar is the threshold from which a turn is called a block.
      expect(turn.endMin - turn.startMax - starved, JSON.stringify(turn)).toBeLessThan(0.05);
    }
  });

  it('is found on the stack too, where no symbol names it', async () => {
    const target = await startNode(path, 'saturated', ['spinning']);
    const memory = memoryOf(target.pid);
    void target.begin();
    const search = findLoopOnStack(target.pid, target.pid, { memory, idleMetrics: true });
    const found = find(search);
    expect(found?.address).toBe(openedLoop(target.pid).address);
  });

  it('is refused where something else lies, and gone when the process is', async () => {
    const target = await startNode(path, 'parked', ['spinning']);
    const memory = memoryOf(target.pid);
    const loop = openedLoop(target.pid);
    expect(openLoopAt(memory, loop.address + 64)).toMatchObject({ ok: false });
    expect(openLoopAt(memory, 4096)).toMatchObject({ ok: false });
    expect(loop.read(monotonicNow())).not.toBeNull();
    const exited = new Promise((resolve) => target.child.once('exit', resolve));
    target.stop();
    await exited;
    expect(loop.read(monotonicNow())).toBeNull();
    expect(openNodeMainLoop(target.pid, memory)).toMatchObject({ ok: false });
  });
});

/** Tries as the sampler does, for at most 4 s. */
function find(search: ReturnType<typeof findLoopOnStack>): LoopProbe | null {
  for (let tries = 0; tries < 300; tries++) {
    const loop = search.tryOnce();
    if (loop !== null) return loop;
    pause(0.012);
  }
  return null;
}

describe.each(interpreters())("uvloop's loop on CPython $version", ({ path }) => {
  it.each(['parked', 'saturated', 'spinning'])(
    'is found on the stack of a %s server, and its blocks are seen',
    async (mode) => {
      const { python } = await pythonEnvironment(['uvloop'], path);
      const target = await start(python, [
        fixture('uvloop-blocks.py'),
        mode,
        `${BLOCKS}`,
        `${BLOCK}`,
      ]);
      const memory = memoryOf(target.pid);
      const search = findLoopOnStack(target.pid, target.pid, { memory });
      const loop = find(search);
      expect(loop).not.toBeNull();
      expect(search.tries).toBeLessThan(60);
      if (loop === null) return;
      expectTruthful(await watch(target.pid, loop, target.begin()));
    },
  );
});
