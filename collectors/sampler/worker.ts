import { parentPort, workerData } from 'node:worker_threads';
import type { SamplerPlan, WorkerMessage } from './messages.ts';
import { openNodeAdapter } from './node-adapter.ts';
import { openPythonAdapter } from './python-adapter.ts';
import { SamplingLoop } from './sampling-loop.ts';

/** The sampling thread: nothing else runs here, and between samples it sleeps on a shared cell. */

function start(plan: SamplerPlan, post: (message: WorkerMessage) => void): void {
  const opened = plan.runtime === 'python' ? openPythonAdapter(plan) : openNodeAdapter(plan);
  if (!opened.ok) {
    post({ kind: 'unavailable', reason: opened.reason, remedy: opened.remedy });
    return;
  }
  new SamplingLoop(plan, opened.adapter).run((batch, last) => post({ kind: 'batch', batch, last }));
}

if (parentPort !== null) {
  const port = parentPort;
  start(workerData as SamplerPlan, (message) => port.postMessage(message));
}
