import { parentPort, workerData } from 'node:worker_threads';
import { CELL, type SamplerPlan, type WorkerMessage } from './messages.ts';
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
  const loop = new SamplingLoop(plan, opened.adapter);
  const loops = loop.prepare();
  post({ kind: 'ready', loops, missing: loops.length === 0 ? opened.adapter.missing : null });
  Atomics.wait(new Int32Array(plan.control), CELL.go, 0);
  loop.run((batch, last) => post({ kind: 'batch', batch, last }));
}

if (parentPort !== null) {
  const port = parentPort;
  start(workerData as SamplerPlan, (message) => port.postMessage(message));
}
