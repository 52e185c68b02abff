import { lostConnections } from '../../src/analysis/lost-connections.ts';
import { missedWakeUps } from '../../src/analysis/missed-wake-ups.ts';
import type { MissedLook } from '../../src/core/missed-look.ts';
import type { PoolLook } from '../../src/core/pool-look.ts';
import { seededRandom } from '../../src/core/random.ts';
import { SNAPSHOT } from '../../src/core/semconv.ts';
import { wilson } from '../../src/core/statistics.ts';
import type { RecordingView, Seconds, Snapshot } from '../../src/core/types.ts';
import { table } from './measurements.ts';

/* How often the detectors of used-up pools and of missed wake-ups speak, as a function of how well the looks see; simulated looks, the real detectors. */

/** As the looks are taken: pools each second, conditions every two seconds, eight tasks at a time. */
const POOL_EVERY: Seconds = 1;
const CONDITION_EVERY: Seconds = 2;
const SAMPLE = 8;

const viewOf = (kind: string, snapshots: readonly Snapshot[]): RecordingView =>
  ({ snapshots: (of: string) => (of === kind ? snapshots : []) }) as unknown as RecordingView;

function share(runs: number, seed: number, isTold: (random: () => number) => boolean): string {
  const random = seededRandom(seed);
  let hits = 0;
  for (let run = 0; run < runs; run++) if (isTold(random)) hits++;
  const { low, high } = wilson(hits, runs);
  const percent = (ratio: number): string => String(Number((100 * ratio).toFixed(1)));
  return `${percent(hits / runs)} (${percent(low)}–${percent(high)})`;
}

/** A pool for which others wait each time; `noUser`: chance that a look finds nobody who may have a connection. */
function poolIsTold(seconds: Seconds, noUser: number, random: () => number): boolean {
  const snapshots: Snapshot[] = [];
  let wasStuck = false;
  for (let at = POOL_EVERY; at < seconds; at += POOL_EVERY) {
    const isStuck = random() < noUser;
    const waiters = Array.from({ length: 6 }, (_, i) => `${Math.floor(at) + i}`);
    const body: PoolLook = {
      pid: 1,
      pool: { id: 'p', type: 'Pool' },
      sizes: {},
      waiters,
      waitersCount: waiters.length,
      users: isStuck ? 0 : 1,
      frames: [],
    };
    // As the watch does: what comes after a look that found nobody is told as well.
    if (isStuck || wasStuck) snapshots.push({ kind: 'snapshot', at, of: SNAPSHOT.pool, body });
    wasStuck = isStuck;
  }
  return [...lostConnections(viewOf(SNAPSHOT.pool, snapshots))].length > 0;
}

/** `waiting` tasks, of which `lost` were not woken: another eight are read each time. */
function conditionIsTold(
  seconds: Seconds,
  { waiting, lost }: { readonly waiting: number; readonly lost: number },
  random: () => number,
): boolean {
  const snapshots: Snapshot[] = [];
  const first = Math.floor(random() * waiting);
  let from = 0;
  for (let at = CONDITION_EVERY; at < seconds; at += CONDITION_EVERY) {
    const isSeen = Array.from({ length: Math.min(SAMPLE, waiting) }, (_, i) => (from + i) % waiting)
      .map((one) => (one - first + waiting) % waiting)
      .some((distance) => distance < lost);
    from = waiting <= SAMPLE ? 0 : (from + SAMPLE) % waiting;
    if (isSeen) snapshots.push(missed(at));
  }
  return [...missedWakeUps(viewOf(SNAPSHOT.missed, snapshots))].length > 0;
}

function missed(at: Seconds): Snapshot {
  const body: MissedLook = {
    pid: 1,
    task: 'Task-1',
    condition: 'c',
    expression: 'self.items',
    items: 1,
    frames: [],
  };
  return { kind: 'snapshot', at, of: SNAPSHOT.missed, body };
}

/** A program in which a look is wrong by this chance: it meets a task between the event and its wake-up in all three readings. */
function isFalselyTold(seconds: Seconds, wrong: number, random: () => number): boolean {
  const snapshots: Snapshot[] = [];
  for (let at = CONDITION_EVERY; at < seconds; at += CONDITION_EVERY)
    if (random() < wrong) snapshots.push(missed(at));
  return [...missedWakeUps(viewOf(SNAPSHOT.missed, snapshots))].length > 0;
}

/** The tables, of so many simulated runs each. */
export function deadlockPower(runs: number): readonly string[] {
  const lengths = [10, 30, 60];
  const head = lengths.map((seconds) => `${seconds} s`);
  const pools = [0.02, 0.1, 0.2, 0.35, 0.5, 0.8, 1];
  const conditions = [
    [8, 1],
    [32, 1],
    [128, 1],
    [128, 32],
    [512, 1],
    [512, 512],
  ] as const;
  return [
    `Pools for which others wait each time (${runs} simulated runs each, the detector itself): said to be used up, by the share of looks that find nobody who may have a connection. In a pool whose connections are lost that is every look, unless a task of the same functions runs; in a busy one it is none, unless its users are not recognised.`,
    table(
      ['looks that find no user', ...head],
      pools.map((chance, row) => [
        `${Math.round(chance * 100)} %`,
        ...lengths.map((seconds) =>
          share(runs, 100 * row + seconds, (random) => poolIsTold(seconds, chance, random)),
        ),
      ]),
    ),
    'Conditions: said to have missed a wake-up, by how many tasks wait and how many of them were not woken; eight of them are read every two seconds.',
    table(
      ['waiting, of them not woken', ...head],
      conditions.map(([waiting, lost], row) => [
        `${waiting}, ${lost}`,
        ...lengths.map((seconds) =>
          share(runs, 1000 + 100 * row + seconds, (random) =>
            conditionIsTold(seconds, { waiting, lost }, random),
          ),
        ),
      ]),
    ),
    'And falsely, by the share of looks that are wrong: three readings 50 ms apart that all meet a task which is about to be woken.',
    table(
      ['looks that are wrong', ...head],
      [0.001, 0.01, 0.05, 0.1].map((chance, row) => [
        `${Number((chance * 100).toFixed(1))} %`,
        ...lengths.map((seconds) =>
          share(runs, 2000 + 100 * row + seconds, (random) =>
            isFalselyTold(seconds, chance, random),
          ),
        ),
      ]),
    ),
  ];
}
