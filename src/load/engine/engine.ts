import { Worker } from 'node:worker_threads';
import type { StartLoad } from '../contracts.ts';
import { Crew } from './crew.ts';

/** Starts a run over worker threads; see {@link Crew}. */
export const startLoad: StartLoad = (plan, events) =>
  new Crew(plan, events, (setup) => {
    // Compiled: a worker starts from JavaScript.
    return new Worker(new URL('./worker.js', import.meta.url), { workerData: setup });
  });
