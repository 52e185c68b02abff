import { parentPort, workerData } from 'node:worker_threads';
import { readStat } from '../../src/platform/proc.ts';
import { CELL, type SamplerPlan, type WorkerMessage } from './messages.ts';
import { openNodeAdapter } from './node-adapter.ts';
import { openPythonAdapter } from './python-adapter.ts';
import type { AdapterResult } from './runtime-adapter.ts';
import { SamplingLoop } from './sampling-loop.ts';
import { openStateAdapter } from './state-adapter.ts';

/** The sampling thread: nothing else runs here, and between samples it sleeps on a shared cell. */

const GONE = { reason: 'the process is gone', remedy: null } as const;

function openAdapter(plan: SamplerPlan): AdapterResult {
  switch (plan.runtime) {
    case 'python':
      return openPythonAdapter(plan);
    case 'node':
      return openNodeAdapter(plan);
    case 'other':
      return { ok: false, reason: 'iterations of its loop cannot be told apart', remedy: null };
  }
}

function start(plan: SamplerPlan, post: (message: WorkerMessage) => void): void {
  const exact = openAdapter(plan);
  const opened = exact.ok ? exact : openStateAdapter(plan);
  // What was opened by pid belongs to the process that had it then: make sure that it is the one that was found.
  const stat = readStat(plan.pid);
  const isSame = stat !== null && stat.startTicks === plan.startTicks;
  if (!opened.ok || !isSame) {
    const { reason, remedy } = exact.ok ? GONE : exact;
    post({ kind: 'unavailable', ...(isSame ? { reason, remedy } : GONE) });
    return;
  }
  const loop = new SamplingLoop(plan, opened.adapter);
  const loops = loop.prepare();
  if (!exact.ok) post({ kind: 'ready', loops, missing: exact.reason, remedy: exact.remedy });
  else {
    const missing = loops.length === 0 ? opened.adapter.missing : null;
    post({ kind: 'ready', loops, missing, remedy: null });
  }
  Atomics.wait(new Int32Array(plan.control), CELL.go, 0);
  loop.run((batch, last) => post({ kind: 'batch', batch, last }));
}

if (parentPort !== null) {
  const port = parentPort;
  start(workerData as SamplerPlan, (message) => port.postMessage(message));
}
