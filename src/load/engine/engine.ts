import { startThread } from '../../platform/standalone.ts';
import type { StartLoad } from '../contracts.ts';
import { Crew } from './crew.ts';

/**
 * For a worker's short-lived objects. By default there is room for 48 MB, which at 1,024 streams are filled before anything is cleared away; in
 * less, that is done more often and takes less each time.
 */
const YOUNG_MB = 24;

/** Starts a run over worker threads; see {@link Crew}. */
export const startLoad: StartLoad = (plan, events) => {
  return new Crew(plan, events, (setup) => {
    // Compiled: a worker starts from JavaScript.
    return startThread(new URL('./worker.js', import.meta.url), {
      workerData: setup,
      resourceLimits: { maxYoungGenerationSizeMb: YOUNG_MB },
    });
  });
};
