import { parentPort, workerData } from 'node:worker_threads';
import { monotonicNow } from '../../core/clock.ts';
import { MetronomeCells } from './metronome.ts';

/** Sleeps until the time that the other thread has set, and says so; for ever. */
if (parentPort !== null) {
  const port = parentPort;
  const cells = new MetronomeCells(workerData as SharedArrayBuffer);
  for (;;) {
    const changes = cells.changes;
    const left = cells.at - monotonicNow();
    if (left > 0 && cells.waitForChange(changes, left)) continue;
    if (cells.at === Number.POSITIVE_INFINITY) continue;
    port.postMessage(null);
    cells.waitForChange(changes, Number.POSITIVE_INFINITY);
  }
}
