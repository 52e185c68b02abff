import { parentPort, workerData } from 'node:worker_threads';
import { monotonicNow } from '../../core/clock.ts';
import { ExponentialHistogram } from '../../core/exponential-histogram.ts';
import type { Seconds } from '../../core/types.ts';
import type { LoadPlan } from '../plan.ts';
import { openPrompts } from '../prompts/prompts.ts';
import { seedOf } from '../seed.ts';
import { openWire } from '../wire/wire.ts';
import { PreciseAlarms } from './alarms.ts';
import { SharedCells } from './cells.ts';
import { Driver } from './driver.ts';
import { HistogramPack } from './histogram-pack.ts';
import type { FromWorker, ToWorker, WorkerSetup } from './messages.ts';
import { Metronome } from './metronome.ts';
import { ThreadCpu } from './thread-cpu.ts';

/** The thread that sends and measures: nothing else runs here. */

const BATCH_EVERY: Seconds = 0.1;
/** With nothing to tell, a batch still says that the worker is alive. */
const BATCH_AT_LEAST_EVERY: Seconds = 1;

function start(setup: WorkerSetup, port: NonNullable<typeof parentPort>): void {
  const { plan, worker, workers, wallOffset } = setup;
  const post = (message: FromWorker, transfer?: readonly ArrayBuffer[]): void =>
    port.postMessage(message, transfer);
  const source = openPrompts(plan.prompts, plan.body, plan.endpoint.api, seedOf(plan));
  const wire = openWire({
    endpoint: plan.endpoint,
    timeouts: plan.timeouts,
    streaming: plan.body.stream,
    keepText: source.wantsAnswers,
  });
  const driver = new Driver({
    plan,
    worker,
    workers,
    wire,
    source,
    alarms: new PreciseAlarms(needsMetronome(plan) ? (ring) => new Metronome(ring) : null),
    cells: new SharedCells(setup.cells),
    wallOffset,
    report(event) {
      // What it speaks of goes before it.
      flush();
      post({ kind: 'event', event });
    },
  });
  const cpu = new ThreadCpu();
  const loopDelay = new ExponentialHistogram();
  const histograms = new HistogramPack();
  let flushedAt = monotonicNow();

  function flush(): void {
    const now = monotonicNow();
    const batch = {
      worker,
      from: flushedAt,
      to: now,
      stages: [...driver.takeStages((histogram) => histograms.drain(histogram))],
      requests: driver.records.take(),
      loopDelay: histograms.drain(loopDelay),
      readLag: histograms.drain(wire.readLag),
      coreShare: cpu.share(),
      inFlight: driver.inFlight,
      stage: driver.stage,
      serverOffset: driver.serverClock.bounds,
      histograms: histograms.take(),
    };
    flushedAt = now;
    post({ kind: 'batch', batch }, [batch.requests.numbers.buffer, batch.histograms.buffer]);
  }

  const timer = setInterval(() => {
    const isQuiet = driver.records.count === 0 && driver.inFlight === 0;
    if (isQuiet && monotonicNow() - flushedAt < BATCH_AT_LEAST_EVERY) return;
    flush();
  }, BATCH_EVERY * 1e3);

  function finish(): void {
    clearInterval(timer);
    flush();
    wire.close();
    cpu.close();
    post({ kind: 'ended' });
    port.close();
  }

  port.on('message', (message: ToWorker) => {
    switch (message.kind) {
      case 'ping':
        loopDelay.record(Math.max(0, monotonicNow() - message.at));
        return;
      case 'stage':
        driver.begin(message.stage, message.at, message.firstUnit);
        return;
      case 'stop':
        driver.stop();
        return;
      case 'abort':
        driver.abort();
        return;
      case 'finish':
        finish();
        return;
      default:
        return message satisfies never;
    }
  });
  driver.prepare();
  post({ kind: 'ready' });
}

/** Whether requests are due at times of their own. */
function needsMetronome({ stages, prompts }: LoadPlan): boolean {
  return (
    stages.some(({ arrival }) => arrival.kind !== 'closed') ||
    (prompts.turns > 1 && prompts.thinkTime > 0)
  );
}

// What it throws, now or later, reaches the main thread as the worker's `error`.
if (parentPort !== null) start(workerData as WorkerSetup, parentPort);
