import { monotonicNow } from '../../src/core/clock.ts';
import type { Seconds } from '../../src/core/types.ts';
import { readStat } from '../../src/platform/proc.ts';
import type { LoopKind } from './turn-watch.ts';
import { Handovers } from './handovers.ts';
import { CELL, type Opened, type SamplerPlan } from './messages.ts';
import { openNodeAdapter } from './node-adapter.ts';
import { ProcessSampler } from './process-sampler.ts';
import { openPythonAdapter } from './python-adapter.ts';
import { Rounds } from './rounds.ts';
import type { AdapterResult } from './runtime-adapter.ts';
import { openStateAdapter } from './state-adapter.ts';
import type { Steps } from './steps.ts';

/** Opening a process for sampling, step by step: reading its program, looking for its loops, having V8 compile our way through them. */

/** Rounds after which V8 has optimised the hot path (measured: 250 µs a round before, 120 µs after), and the time they may take. */
const WARM_UP_ROUNDS = 8000;
const WARM_UP_LIMIT: Seconds = 0.15;
/** One step of it, short beside the pause between samples. */
const WARM_UP_STEP: Seconds = 0.002;

/** What came of it; there is a sampler when it is `ready`. */
export interface Opening {
  readonly opened: Opened;
  readonly sampler: ProcessSampler | null;
}

const GONE = { reason: 'the process is gone', remedy: null } as const;

/** Never throws on account of the target. `warm` holds the kinds of loops that have been sampled often enough, and takes new ones. */
export function* openProcess(plan: SamplerPlan, warm: Set<LoopKind>): Steps<Opening> {
  const exact = yield* openAdapter(plan);
  const adapter = exact.ok ? exact : openStateAdapter(plan);
  // What was opened by pid belongs to the process that had it then: make sure that it is the one that was found.
  const stat = readStat(plan.pid);
  const isSame = stat !== null && stat.startTicks === plan.startTicks;
  if (!adapter.ok || !isSame) {
    if (adapter.ok) adapter.adapter.close();
    const { reason, remedy } = exact.ok || !isSame ? GONE : exact;
    return { opened: { kind: 'unavailable', reason, remedy }, sampler: null };
  }
  const sampler = new ProcessSampler(plan, adapter.adapter);
  let trouble: string | null = 'it is no longer wanted';
  try {
    yield 0;
    sampler.discover(monotonicNow());
    trouble = yield* warmUp(sampler, warm);
  } finally {
    if (trouble !== null) sampler.close();
  }
  if (trouble !== null)
    return { opened: { kind: 'unavailable', reason: trouble, remedy: null }, sampler: null };
  const { loops } = sampler;
  if (!exact.ok) {
    const { reason: missing, remedy } = exact;
    return { opened: { kind: 'ready', loops, missing, remedy }, sampler };
  }
  const missing = loops.length === 0 ? adapter.adapter.missing : null;
  return { opened: { kind: 'ready', loops, missing, remedy: null }, sampler };
}

function* openAdapter(plan: SamplerPlan): Steps<AdapterResult> {
  switch (plan.runtime) {
    case 'python':
      return yield* openPythonAdapter(plan);
    case 'node':
      return yield* openNodeAdapter(plan);
    case 'other':
      return { ok: false, reason: 'iterations of its loop cannot be told apart', remedy: null };
  }
}

/**
 * Has V8 compile the path of a sample now: at 80 samples a second it would run interpreted for the first minute. Gives why sampling came to
 * an end over it, null when it did not.
 */
function* warmUp(sampler: ProcessSampler, warm: Set<LoopKind>): Steps<string | null> {
  const cold = sampler.loops.filter(({ kind }) => !warm.has(kind));
  for (const { kind } of cold) warm.add(kind);
  if (cold.length === 0) return null;
  const cells = new Int32Array(CELL.count);
  let trouble: string | null = null;
  const handovers = new Handovers(cells, (batches) => {
    cells[CELL.taken] = (cells[CELL.taken] ?? 0) + 1;
    const last = batches.find((one) => one.last);
    if (last !== undefined) trouble = last.batch.gaps.at(-1)?.detail ?? 'it ended';
  });
  const rounds = new Rounds(handovers);
  const at = monotonicNow();
  rounds.add({ member: 0, sampler, since: at }, at);
  let spent: Seconds = 0;
  for (let done = 0; done < WARM_UP_ROUNDS && spent < WARM_UP_LIMIT && trouble === null;) {
    const from = monotonicNow();
    done += rounds.rehearse(WARM_UP_ROUNDS - done, WARM_UP_STEP);
    spent += monotonicNow() - from;
    yield 0;
  }
  return trouble;
}
