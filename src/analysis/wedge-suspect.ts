import { type EngineProcess, frameText, nameOf } from './engine-state.ts';
import { SPINNING_CPU } from './wedge-cause.ts';
import { formatNumber } from '../core/units.ts';

/** Which of an engine's processes is not where its fellows are. */

export interface Suspect {
  readonly process: EngineProcess;
  readonly why: string;
  /** What is wrong with it, where that says more than how the engine looks as a whole. */
  readonly mechanism: 'deadlock' | null;
}

/** The process that is not where its fellows are. */
export function suspectOf(processes: readonly EngineProcess[]): Suspect | null {
  const stopped = processes.find((one) => one.stopped);
  if (stopped !== undefined)
    return { process: stopped, why: `${nameOf(stopped)} is stopped`, mechanism: null };
  // A lock is given back by a thread of the same process; a message, which the others wait for, comes from elsewhere.
  const locked = processes.filter(({ wait }) => wait === 'lock');
  const [onlyLocked] = locked;
  if (onlyLocked !== undefined && locked.length < processes.length)
    return {
      process: onlyLocked,
      why: `${nameOf(onlyLocked)} waits for a lock${frameText(onlyLocked)}`,
      mechanism: 'deadlock',
    };
  const odd = oddOne(processes);
  if (odd !== null) return odd;
  const busiest = processes.toSorted((a, b) => (b.cpu ?? 0) - (a.cpu ?? 0))[0];
  if (busiest !== undefined && (busiest.cpu ?? 0) >= SPINNING_CPU)
    return {
      process: busiest,
      why: `${nameOf(busiest)} spins${frameText(busiest)}`,
      mechanism: null,
    };
  return null;
}

/** Of at least three ranks, the one whose stack, or else whose sleep, differs from all others'. */
function oddOne(processes: readonly EngineProcess[]): Suspect | null {
  const ranks = processes.filter(({ target }) => /worker|scheduler/.test(target.role ?? ''));
  if (ranks.length < 2) return null;
  const byStack = new Map<string, EngineProcess[]>();
  for (const one of ranks) {
    if (one.frames === null) continue;
    const key = one.frames.map(({ function: name, file }) => `${name} ${file}`).join('\n');
    byStack.set(key, [...(byStack.get(key) ?? []), one]);
  }
  const groups = [...byStack.values()].toSorted((a, b) => a.length - b.length);
  const [[alone] = [], ...others] = groups;
  if (alone !== undefined && groups[0]?.length === 1 && others.some(({ length }) => length > 1))
    return {
      process: alone,
      why: `${nameOf(alone)} is elsewhere than the other ranks${frameText(alone)}`,
      mechanism: null,
    };
  return oddSleeper(ranks);
}

/** Waking up less than a tenth as often as the others: they poll, it waits for ever. */
const SLEEPS_LESS = 0.1;
const POLLS_AT_LEAST = 1;

function oddSleeper(ranks: readonly EngineProcess[]): Suspect | null {
  const known = ranks
    .filter((one) => one.sleeps !== null)
    .toSorted((a, b) => (a.sleeps ?? 0) - (b.sleeps ?? 0));
  const [least, next] = known;
  if (least === undefined || next === undefined || known.length < 2) return null;
  const [low, high] = [least.sleeps ?? 0, next.sleeps ?? 0];
  if (high < POLLS_AT_LEAST || low > high * SLEEPS_LESS) return null;
  return {
    process: least,
    why: `${nameOf(least)} does not wake up any more (${formatNumber(low)} times a second, the other ranks ${formatNumber(high)} and more)`,
    mechanism: null,
  };
}
