import { usefulWorkers } from '../../load/engine/workload.ts';
import {
  descriptorLimit,
  openDescriptors,
  tooFewDescriptors,
} from '../../platform/descriptor-limit.ts';
import type { LoadOptions } from './options.ts';

/** Whether a run can have as many connections as it asks for. */

/** Beside the connections: a recording, an exporter, a server's page, what is loaded later. */
const OWN = 64;
/** Of each worker: its two threads' own, and its clock of CPU time. */
const EACH_WORKER = 16;

/**
 * Throws a TraceError where a closed loop takes more open files than there may be: what goes beyond
 * would fail, and say nothing of the server. How many a rate takes depends on the server, and is
 * not known.
 */
export function checkDescriptors(
  { stages, workers }: Pick<LoadOptions, 'stages' | 'workers'>,
  limit: number | null = descriptorLimit(),
): void {
  const streams = Math.max(
    ...stages.map(({ arrival }) => (arrival.kind === 'closed' ? arrival.concurrency : 0)),
  );
  const own = openDescriptors() + OWN + EACH_WORKER * usefulWorkers({ workers, stages });
  if (limit === null || streams === 0 || streams + own <= limit) return;
  throw tooFewDescriptors(
    `${streams} connections at once take ${streams + own} open files, and trace may have ${limit}`,
    streams + own,
    limit > own ? `, or ask for at most ${limit - own} at once` : '',
  );
}
