import { setFlagsFromString } from 'node:v8';
import { startThread } from '../../platform/standalone.ts';
import type { StartLoad } from '../contracts.ts';
import { Crew } from './crew.ts';

/**
 * For a worker's short-lived objects. By default there is room for 48 MB, which at 1,024 streams are filled before anything is cleared away; in
 * less, that is done more often and takes less each time: at 256 streams 1.9 ms (2.4 at most) with 24, 0.7 (1.1) with 6, 0.7 (5.8) with 3.
 */
const YOUNG_MB = 6;

/**
 * V8's own flags: a worker clears these objects away by itself. Helpers at it go behind the worker on a core it has to share (`priority.ts`): it
 * would wait for them.
 */
const CLEAR_ALONE = [
  '--no-parallel-scavenge',
  '--no-concurrent-sweeping',
  '--no-concurrent-array-buffer-sweeping',
];

/** Starts a run over worker threads; see {@link Crew}. */
export const startLoad: StartLoad = (plan, events) => {
  // Of the whole process, and read at each collection: they may be set while it runs.
  for (const flag of CLEAR_ALONE) setFlagsFromString(flag);
  return new Crew(plan, events, (setup) => {
    // Compiled: a worker starts from JavaScript.
    return startThread(new URL('./worker.js', import.meta.url), {
      workerData: setup,
      resourceLimits: { maxYoungGenerationSizeMb: YOUNG_MB },
    });
  });
};
