// A day of a run in minutes: what attach keeps in memory and on disk, fed with the seconds of so many processes as fast as it takes them, by a
// clock of its own. A line of JSON for each hour, one at the end: `node day-in-child.mjs <folder> <hours> <processes> <max size, bytes>`.
import { readdirSync, statSync } from 'node:fs';
import { join } from 'node:path';
import { setImmediate } from 'node:timers/promises';
import { detectAll } from '../../dist/src/analysis/detectors.js';
import { ExponentialHistogram } from '../../dist/src/core/exponential-histogram.js';
import { memoryRecording } from '../../dist/src/recording/memory.js';
import { openRecording } from '../../dist/src/recording/reader.js';
import { openRecordingWriter } from '../../dist/src/recording/writer.js';
import { summariseMetrics } from '../../dist/src/report/metric-summary.js';

const [directory, ...numbers] = process.argv.slice(2);
const [hours, processes, maxSize] = numbers.map(Number);
/** What a process collector and a sampler say of one process in a second. */
const SERIES = 45;
/** One block of 60 to 90 ms in so many seconds. */
const BLOCK_EVERY = 20;
const T0 = 1_700_000_000;
let now = T0;
let state = 1;
const random = () => (state = (state * 48_271) % 0x7fff_ffff) / 0x7fff_ffff;
const targets = Array.from({ length: processes }, (_, i) => ({
  pid: 1000 + i,
  parent: 1,
  startTicks: 1,
  runtime: 'python',
  runtimeVersion: '3.11.7',
  title: 'python server.py',
  role: null,
}));
const start = {
  schemaVersion: 1,
  toolVersion: '0.0.0',
  command: 'attach',
  startedAt: T0,
  traceId: '0af7651916cd43dd8448eb211c80319c',
  targets,
  collectors: [],
  settings: { lag_threshold_s: 0.05 },
};
const memory = memoryRecording(start);
const disk = await openRecordingWriter({
  directory,
  start,
  env: {},
  maxSize,
  clock: { now: () => now, mono: () => now },
});
const write = (observation) => {
  memory.write(observation);
  disk.write(observation);
};
const attributesOf = targets.map(({ pid }) =>
  Array.from({ length: SERIES }, (_, i) => ({ 'process.pid': pid, 'thread.id': pid + (i % 9) })),
);
const delay = new ExponentialHistogram();

function second(n) {
  for (const [i, { pid }] of targets.entries()) {
    const attributes = attributesOf[i];
    for (let s = 0; s < SERIES; s++)
      write({
        kind: 'sample',
        at: now,
        metric: `test.${s}`,
        value: random(),
        attributes: attributes[s],
      });
    const fds = { kind: 'sample', at: now, metric: 'process.unix.file_descriptor.count' };
    write({ ...fds, value: 100 + Math.floor(n / 600) + (n % 7), attributes: attributes[0] });
    for (let r = 0; r < 80; r++) delay.record(random() < 0.7 ? 0 : random() * 0.01);
    const metric = 'tracewright.eventloop.delay';
    write({
      kind: 'histogram',
      from: now - 1,
      to: now,
      metric,
      buckets: delay.drain(),
      attributes: attributes[0],
    });
    if (n % BLOCK_EVERY === i % BLOCK_EVERY) block(pid, now);
  }
}

function block(pid, at) {
  const id = `stack-${Math.floor(random() * 50)}`;
  const frames = Array.from({ length: 25 }, (_, f) => ({
    function: `${id}_${f}`,
    file: '/srv/app.py',
    line: f,
  }));
  const length = 0.06 + random() * 0.03;
  write({ kind: 'stack', at, id, frames });
  write({
    kind: 'span',
    name: 'tracewright.eventloop.blocked',
    from: at,
    to: at + length,
    attributes: {
      'process.pid': pid,
      'thread.id': pid,
      'code.function.name': `${id}_0`,
      'code.stacktrace': frames
        .map((f) => `  File "${f.file}", line ${f.line}, in ${f.function}`)
        .join('\n'),
      'tracewright.stack.id': id,
      'tracewright.block.duration_min': length - 0.002,
      'tracewright.block.duration_max': length + 0.002,
      'tracewright.block.stack_shares': [`${id}=${length}`],
    },
  });
}

/** So that what is done beside the work keeps up, as it does when a second takes a second. */
async function tidied() {
  while (readdirSync(directory).filter((name) => /\.jsonl$|\.partial$/.test(name)).length > 1)
    await setImmediate();
}

const sizeOfDisk = () =>
  readdirSync(directory).reduce((sum, name) => {
    try {
      return sum + statSync(join(directory, name)).size;
    } catch {
      return sum;
    }
  }, 0);
const say = (line) => process.stdout.write(`${JSON.stringify(line)}\n`);

let largest = 0;
for (let n = 1; n <= hours * 3600; n++) {
  now = T0 + n;
  second(n);
  await disk.flush();
  if (n % 60 === 0) {
    largest = Math.max(largest, sizeOfDisk());
    await tidied();
  }
  if (n % 3600 === 0) say({ hour: n / 3600, rss: process.memoryUsage.rss(), disk: sizeOfDisk() });
}
const end = { endedAt: now, interrupted: false, reason: 'duration', ownCpuRatio: 0, startupCpu: 0 };
const view = memory.view({ ...end, targetPaused: 0, samples: 0, late: 0, dropped: 0 });
let from = performance.now();
const findings = detectAll(view);
const detected = (performance.now() - from) / 1e3;
await disk.end(view.end, findings);
from = performance.now();
const stored = await openRecording(directory);
const metrics = summariseMetrics(stored).length;
say({
  findings: findings.map(({ code }) => code),
  again: detectAll(stored).map(({ code }) => code),
  blocks: [view, stored].map((one) =>
    one
      .spans('tracewright.eventloop.blocked')
      .reduce((sum, { attributes }) => sum + (attributes['tracewright.composite.count'] ?? 1), 0),
  ),
  problems: stored.problems,
  metrics,
  detected,
  readBack: (performance.now() - from) / 1e3,
  rss: process.memoryUsage.rss(),
  disk: sizeOfDisk(),
  largest,
  dropped: [memory.dropped, disk.dropped],
});
