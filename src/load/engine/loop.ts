import type { LoadPlan } from '../plan.ts';
import { seedOf } from '../seed.ts';
import type { Alarms } from './alarms.ts';
import type { SharedCells } from './cells.ts';
import { ClosedLoop, type Users } from './closed-loop.ts';
import { OpenLoop } from './open-loop.ts';
import type { Loop, Sender, StageRun } from './stage-run.ts';
import { type Prepare, Supply } from './supply.ts';
import { ReplayTimetable, SharedSchedule, type Timetable } from './timetable.ts';
import { share } from './workload.ts';

export interface LoopParts {
  readonly plan: LoadPlan;
  readonly worker: number;
  readonly workers: number;
  readonly sender: Sender;
  readonly alarms: Alarms;
  readonly cells: SharedCells;
  readonly prepare: Prepare;
  readonly users: Users;
  /** Requests of closed loops, over all stages. */
  readonly claimed: Supply;
}

/** What decides when the requests of a stage are sent; `firstUnit` is the first of one whose schedule says when. */
export function loopOf(stage: StageRun, firstUnit: number, parts: LoopParts): Loop {
  const { plan, sender, alarms, prepare, worker, workers } = parts;
  const { turns, thinkTime } = plan.prompts;
  const { arrival, maxConcurrency } = stage.plan;
  const common = { stage, sender, alarms, prepare, turns, thinkTime };
  if (arrival.kind === 'closed') {
    const { users, cells, claimed } = parts;
    const { concurrency, rampUp } = arrival;
    return new ClosedLoop({ ...common, users, supply: claimed, cells, concurrency, rampUp });
  }
  let unit = firstUnit + worker - workers;
  const supply = new Supply(prepare, turns, () => (unit += workers));
  const places =
    maxConcurrency === null ? Number.POSITIVE_INFINITY : share(maxConcurrency, worker, workers);
  const timetable: Timetable =
    arrival.kind === 'replay'
      ? new ReplayTimetable(stage, supply, { speed: arrival.speed, worker, workers })
      : new SharedSchedule({ ...scheduleOf(stage, plan), arrival }, worker, workers);
  return new OpenLoop({ ...common, supply, timetable, places, firstUnit });
}

function scheduleOf(stage: StageRun, plan: LoadPlan) {
  const { duration, requests } = stage.plan;
  return {
    seed: seedOf(plan),
    stage: stage.index,
    warmup: stage.warmup,
    duration,
    // Units are conversations; the last one may be cut short by its failure, never by the count.
    requests: requests === null ? null : Math.ceil(requests / plan.prompts.turns),
  };
}
