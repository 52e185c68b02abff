import { processView, targetsOf } from '../core/process-view.ts';
import type { Detector, Finding, FindingKind, RecordingView } from '../core/types.ts';
import { clientSaturated } from './client-saturated.ts';
import { cpuSpin } from './cpu-spin.ts';
import { cpuThrottled } from './cpu-throttled.ts';
import { databaseDeadlock } from './database-deadlock.ts';
import { databaseLocks } from './database-locks.ts';
import { deadlock } from './deadlock.ts';
import { crosstalk } from './crosstalk.ts';
import { fdLeak, threadLeak } from './growth.ts';
import { memoryLeak } from './growth-memory.ts';
import { gpuFault } from './gpu-fault.ts';
import { gpuIdle } from './gpu-idle.ts';
import { gpuMemoryLeak } from './gpu-memory-leak.ts';
import { gpuThrottled } from './gpu-throttled.ts';
import { lockContention } from './lock-contention.ts';
import { latencyDrift } from './latency-drift.ts';
import { loopBlocked } from './loop-blocked.ts';
import { memoryLimit } from './memory-limit.ts';
import { processExit } from './process-exit.ts';
import { groupFindings, SEVERITY_RANK } from './processes.ts';
import { raceErrors } from './race-errors.ts';
import { requestErrors } from './request-errors.ts';
import { restarts } from './restarts.ts';
import { saturation } from './saturation.ts';
import { serverSaturation } from './server-saturation.ts';
import { slowRequests } from './slow-requests.ts';
import { tell } from './stories.ts';
import { taskLeak } from './task-leak.ts';
import { wedge } from './wedge.ts';

/** Every detector, in the order of their codes. */
export const DETECTORS: readonly Detector[] = [
  loopBlocked,
  cpuSpin,
  deadlock,
  lockContention,
  memoryLeak,
  fdLeak,
  threadLeak,
  taskLeak,
  latencyDrift,
  raceErrors,
  crosstalk,
  cpuThrottled,
  memoryLimit,
  databaseLocks,
  databaseDeadlock,
  processExit,
  restarts,
  wedge,
  serverSaturation,
  gpuMemoryLeak,
  gpuIdle,
  gpuThrottled,
  gpuFault,
  clientSaturated,
  saturation,
  requestErrors,
  slowRequests,
];

/** What a finding explains needs none of its own: the queue of a server that does not move is no matter of its size. */
const EXPLAINED: Partial<Record<FindingKind, readonly FindingKind[]>> = {
  wedge: ['saturation'],
};

/** All that the detectors say of a recording, worst first but causes before what came of them, numbered F1, F2, …; the same recording always gives the same list. */
export function detectAll(view: RecordingView): readonly Finding[] {
  const processes = targetsOf(view);
  const views = processes.length < 2 ? [view] : processes.map((one) => processView(view, one));
  const found = DETECTORS.flatMap((detector) =>
    (detector.of === 'run' ? [view] : views).flatMap((one) => [...detector.detect(one)]),
  );
  const ranked = (processes.length < 2 ? found : groupFindings(found, view))
    .filter(({ kind }) => !found.some((other) => EXPLAINED[other.kind]?.includes(kind)))
    .map((finding, order) => ({ finding, order }))
    .sort(
      (a, b) =>
        SEVERITY_RANK[a.finding.severity] - SEVERITY_RANK[b.finding.severity] || a.order - b.order,
    )
    .map(({ finding }) => finding);
  return tell(ranked).map(({ finding, because }, index) => ({
    ...finding,
    id: `F${index + 1}`,
    ...(because === null
      ? {}
      : { because: { finding: `F${because.cause + 1}`, why: because.why } }),
  }));
}
