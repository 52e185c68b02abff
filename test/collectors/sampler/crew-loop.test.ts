import { describe, expect, it } from 'vitest';
import { monotonicNow } from '../../../src/core/clock.ts';
import { CrewLoop } from '../../../collectors/sampler/crew-loop.ts';
import {
  type Batch,
  CELL,
  type Command,
  type MemberBatch,
  type SamplerPlan,
  type WorkerMessage,
} from '../../../collectors/sampler/messages.ts';
import type { Opening } from '../../../collectors/sampler/opening.ts';
import { ProcessSampler } from '../../../collectors/sampler/process-sampler.ts';
import type { RuntimeAdapter } from '../../../collectors/sampler/runtime-adapter.ts';
import { StateWatch } from '../../../collectors/sampler/state-adapter.ts';
import type { Steps } from '../../../collectors/sampler/steps.ts';
import { readStat } from '../../../src/platform/proc.ts';

/*
 * The worker's loop on this very process, in this very thread: it blocks until the last command. `react` is asked what the main thread
 * would say to each message.
 */

const OWN = { pid: process.pid, startTicks: readStat(process.pid)?.startTicks ?? 0 };
const plan = (startTicks = OWN.startTicks): SamplerPlan => ({
  pid: OWN.pid,
  startTicks,
  runtime: 'other',
  threshold: 0.05,
  raw: false,
});

/** A loop that never does anything; `round` is called with each sample. */
function idleAdapter(round: () => void): RuntimeAdapter {
  let isFound = false;
  return {
    discover() {
      if (isFound) return [];
      isFound = true;
      const thread = { tid: process.pid, name: 'main', kind: 'unknown' } as const;
      const watch = new StateWatch({ text: () => '232 0x5 0 0 0 0 0 0x7f 0x7f' });
      return [{ thread, watch, soughtFrom: 0 }];
    },
    round: () => {
      round();
      return [];
    },
    stack: null,
    holdUp: null,
    missing: '',
    rejected: () => ({}),
    bytesRead: () => 0,
    close: () => {},
  };
}

interface Script {
  /** How each member is opened. */
  readonly open: Readonly<Record<number, (plan: SamplerPlan) => Steps<RuntimeAdapter>>>;
  readonly plans?: Readonly<Record<number, SamplerPlan>>;
  readonly react: (message: WorkerMessage, send: (command: Command) => void) => void;
}

/** Runs the script to its end; gives what was handed over, by member. */
function runCrew({ open, plans = {}, react }: Script): Map<number, MemberBatch[]> {
  const cells = new Int32Array(new SharedArrayBuffer(CELL.count * 4));
  const members = Object.keys(open).map(Number);
  const commands: Command[] = [];
  const send = (command: Command): void => {
    commands.push(command);
    cells[CELL.commands] = (cells[CELL.commands] ?? 0) + 1;
  };
  send({ kind: 'open', member: 1, plan: plans[1] ?? plan() });
  const byMember = new Map<number, MemberBatch[]>(members.map((member) => [member, []]));
  const opened: number[] = [];
  const loop = new CrewLoop(
    cells,
    {
      receive: () => commands.shift(),
      post(message) {
        if (message.kind === 'handover') {
          cells[CELL.taken] = (cells[CELL.taken] ?? 0) + 1;
          for (const one of message.batches) byMember.get(one.member)?.push(one);
        }
        react(message, send);
      },
    },
    function* (plan): Steps<Opening> {
      const member = members[opened.length] ?? 0;
      opened.push(member);
      const adapter = yield* open[member]?.(plan) ?? neverOpened();
      const sampler = new ProcessSampler(plan, adapter);
      sampler.discover(0);
      const { loops } = sampler;
      return { opened: { kind: 'ready', loops, missing: null, remedy: null }, sampler };
    },
  );
  loop.run();
  return byMember;
}

function* neverOpened(): Steps<RuntimeAdapter> {
  yield 0;
  throw new Error('not in the script');
}

const opens = (round: () => void = () => {}) =>
  function* (): Steps<RuntimeAdapter> {
    yield 0;
    return idleAdapter(round);
  };

const gapsOf = (batches: readonly MemberBatch[] | undefined): Batch['gaps'] =>
  (batches ?? []).flatMap(({ batch }) => batch.gaps);
const secondsOf = (batches: readonly MemberBatch[] | undefined): number =>
  (batches ?? []).reduce((sum, { batch }) => sum + batch.seconds.length, 0);

function busyFor(ms: number): void {
  const until = performance.now() + ms;
  while (performance.now() < until);
}

/** Lets each begin once it is open, the second joining after the first second of the first; ends when `isOver`. */
function reaction(isOver: (message: WorkerMessage) => boolean): Script['react'] {
  let hasJoined = false;
  let hasStopped = false;
  return (message, send) => {
    if (message.kind === 'opened')
      send({ kind: 'go', member: message.member, since: monotonicNow() });
    else if (!hasJoined) {
      hasJoined = true;
      send({ kind: 'open', member: 2, plan: plan() });
    }
    if (!hasStopped && isOver(message)) {
      hasStopped = true;
      send({ kind: 'stop', member: 1, at: monotonicNow() });
      send({ kind: 'stop', member: 2, at: monotonicNow() });
      send({ kind: 'end' });
    }
  };
}

/** When member `member` has handed over so many batches. */
function after(member: number, batches: number): (message: WorkerMessage) => boolean {
  let seen = 0;
  return (message) => {
    if (message.kind !== 'handover') return false;
    seen += message.batches.filter((one) => one.member === member).length;
    return seen >= batches;
  };
}

describe('a crew of several processes', () => {
  it('ends one that fails with a gap that says so, and samples the other on', () => {
    let rounds = 0;
    const failing = opens(() => {
      if (++rounds === 30) throw new Error('a bug of ours');
    });
    const seen = runCrew({
      open: { 1: opens(), 2: failing },
      react: reaction(after(1, 2)),
    });
    expect(seen.get(2)?.map(({ last }) => last)).toEqual([true]);
    expect(gapsOf(seen.get(2)).filter(({ reason }) => reason !== 'late')).toMatchObject([
      { reason: 'failed', detail: expect.stringContaining('a bug of ours') as string },
    ]);
    expect(rounds).toBe(30);
    expect(gapsOf(seen.get(1)).filter(({ reason }) => reason !== 'late')).toEqual([]);
    expect(secondsOf(seen.get(1))).toBeGreaterThanOrEqual(2);
    expect(seen.get(1)?.at(-1)?.last).toBe(true);
  });

  it('says what held a sample up when another process took long to open', () => {
    const slow = function* (): Steps<RuntimeAdapter> {
      busyFor(80);
      yield 0;
      return idleAdapter(() => {});
    };
    const seen = runCrew({ open: { 1: opens(), 2: slow }, react: reaction(after(1, 2)) });
    const held = gapsOf(seen.get(1)).filter(({ detail }) => detail.includes('opening pid'));
    expect(Math.max(...held.map(({ from, to }) => to - from))).toBeGreaterThanOrEqual(0.08);
  });

  it('is sampled on while one opens that takes as long in short steps', () => {
    let rounds = 0;
    let roundsMeanwhile = 0;
    const stepwise = function* (): Steps<RuntimeAdapter> {
      const before = rounds;
      for (let i = 0; i < 80; i++) {
        busyFor(1);
        yield 0;
      }
      roundsMeanwhile = rounds - before;
      return idleAdapter(() => {});
    };
    const first = opens(() => rounds++);
    const seen = runCrew({ open: { 1: first, 2: stepwise }, react: reaction(after(2, 1)) });
    expect(secondsOf(seen.get(2))).toBeGreaterThanOrEqual(1);
    // 80 ms and more: a round is due every 12 ms.
    expect(roundsMeanwhile).toBeGreaterThanOrEqual(4);
  });

  it('ends one that is gone with a gap at its end, and forgets one that is dropped', () => {
    const seen = runCrew({
      open: { 1: opens(), 2: opens() },
      // A process that began at another time: the pid has been reused.
      plans: { 1: plan(OWN.startTicks + 1) },
      react(message, send) {
        if (message.kind === 'opened' && message.member === 1) {
          send({ kind: 'go', member: 1, since: monotonicNow() });
          send({ kind: 'open', member: 2, plan: plan() });
        } else if (message.kind === 'opened') {
          send({ kind: 'go', member: 2, since: monotonicNow() });
          send({ kind: 'drop', member: 2 });
        } else send({ kind: 'end' });
      },
    });
    expect(gapsOf(seen.get(1)).map(({ reason }) => reason)).toContain('target-gone');
    expect(seen.get(1)?.at(-1)?.last).toBe(true);
    expect(seen.get(2)).toEqual([]);
  });
});
