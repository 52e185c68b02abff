import { getPriority, setPriority } from 'node:os';
import { startThread } from '../../platform/standalone.ts';
import type { StartLoad } from '../contracts.ts';
import { Crew } from './crew.ts';

/**
 * Niceness of the main thread beside the workers: what it writes down can wait, an answer that has come cannot. Not lower, or on a machine
 * where the server takes every core, Ctrl-C would not be heard.
 */
const MAIN_NICE = 10;

/**
 * For a worker's short-lived objects. By default there is room for 48 MB, which at 1,024 streams are filled before anything is cleared away; in
 * less, that is done more often and takes less each time.
 */
const YOUNG_MB = 12;

/** Starts a run over worker threads; see {@link Crew}. */
export const startLoad: StartLoad = (plan, events) => {
  const crew = new Crew(plan, events, (setup) => {
    // Compiled: a worker starts from JavaScript.
    return startThread(new URL('./worker.js', import.meta.url), {
      workerData: setup,
      resourceLimits: { maxYoungGenerationSizeMb: YOUNG_MB },
    });
  });
  const restore = stepBack();
  crew.finished.then(restore, restore);
  return crew;
};

/** Lets the workers, which keep the priority they began with, go first; the returned function takes it back where the rights suffice. */
function stepBack(): () => void {
  const before = getPriority();
  const set = (nice: number): void => {
    try {
      // Linux: acts on one thread, and the main thread's id is that of the process.
      setPriority(process.pid, nice);
    } catch {
      // Raising it again takes a right that few have.
    }
  };
  set(Math.max(before, MAIN_NICE));
  return () => set(before);
}
