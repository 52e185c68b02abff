import type { Detector, Finding, RecordingView, Severity } from '../core/types.ts';
import { clientSaturated } from './client-saturated.ts';
import { cpuSpin } from './cpu-spin.ts';
import { fdLeak, threadLeak } from './growth.ts';
import { memoryLeak } from './growth-memory.ts';
import { loopBlocked } from './loop-blocked.ts';
import { requestErrors } from './request-errors.ts';
import { saturation } from './saturation.ts';
import { slowRequests } from './slow-requests.ts';

/** Every detector, in the order of their codes. */
export const DETECTORS: readonly Detector[] = [
  loopBlocked,
  cpuSpin,
  memoryLeak,
  fdLeak,
  threadLeak,
  clientSaturated,
  saturation,
  requestErrors,
  slowRequests,
];

const RANK: Readonly<Record<Severity, number>> = { critical: 0, warning: 1, note: 2 };

/** All that the detectors say of a recording, worst first, numbered F1, F2, …; the same recording always gives the same list. */
export function detectAll(view: RecordingView): readonly Finding[] {
  return DETECTORS.flatMap((detector) => [...detector.detect(view)])
    .map((finding, order) => ({ finding, order }))
    .sort((a, b) => RANK[a.finding.severity] - RANK[b.finding.severity] || a.order - b.order)
    .map(({ finding }, index) => ({ ...finding, id: `F${index + 1}` }));
}
