import type { LoadPlan, StagePlan, Warmup } from '../plan.ts';

/** How the work of a plan is divided: over stages, and over workers. */

/** The warm-up of a stage: by count only before the first, by time before each. */
export function warmupOf({ warmup }: LoadPlan, stage: number): Warmup | null {
  if (warmup === null) return null;
  if ('duration' in warmup) return warmup.duration > 0 ? warmup : null;
  return stage === 0 && warmup.requests > 0 ? warmup : null;
}

/** One worker's part of a whole number; the first ones have one more. */
export function share(whole: number, worker: number, workers: number): number {
  return Math.floor(whole / workers) + (worker < whole % workers ? 1 : 0);
}

/** How many workers a plan can use: each has a place at least, under every limit. */
export function usefulWorkers({ workers, stages }: Pick<LoadPlan, 'workers' | 'stages'>): number {
  const places = (stage: StagePlan): number =>
    stage.arrival.kind === 'closed'
      ? stage.arrival.concurrency
      : (stage.maxConcurrency ?? Number.POSITIVE_INFINITY);
  return Math.max(1, Math.min(workers, ...stages.map(places)));
}
