// A writer in a process of its own, to be killed or starved of disk: `node write-in-child.mjs <folder> endless|until-full|full-for-a-while [<ballast>]`.
import { unlinkSync } from 'node:fs';
import { openRecording } from '../../dist/src/recording/reader.js';
import { openRecordingWriter } from '../../dist/src/recording/writer.js';

const [directory, mode, ballast] = process.argv.slice(2);
// A file-size limit sends this signal before the write fails with EFBIG.
process.on('SIGXFSZ', () => {});
const start = {
  schemaVersion: 1,
  toolVersion: '0.0.0',
  command: 'attach',
  startedAt: 1_700_000_000,
  traceId: '0af7651916cd43dd8448eb211c80319c',
  targets: [],
  collectors: [],
  settings: {},
};
const failures = [];
const resumed = [];
let now = start.startedAt;
const writer = await openRecordingWriter({
  directory,
  start,
  env: {},
  // A second passes with each flush.
  clock: { now: () => now, mono: () => now },
  ...(mode === 'full-for-a-while' ? { segmentBytes: 200_000 } : {}),
  onFailure: (error) => failures.push(error.message),
  onResume: (gap) => resumed.push(gap),
});
let written = 0;
let isFreed = false;
let failedAt;
const isOver = () => {
  if (mode === 'full-for-a-while') return resumed.length > 0 && written > resumed[0].writtenBy;
  return mode === 'endless' ? false : failures.length > 0 || written > 1e6;
};
while (!isOver()) {
  for (let i = 0; i < 37; i++) {
    written++;
    writer.write({ kind: 'sample', at: 1_700_000_000 + written, metric: 'm', value: written });
  }
  now += 1;
  await writer.flush();
  if (mode === 'full-for-a-while') {
    // Full for a minute, then somebody makes room; then there is as much again to write.
    if (failures.length > 0 && !isFreed && now > (failedAt ??= now) + 60) {
      unlinkSync(ballast);
      isFreed = true;
    }
    for (const gap of resumed) gap.writtenBy ??= written + 10_000;
  }
  if (mode === 'endless') process.stdout.write(`${written}\n`);
}
for (let i = 0; i < 5; i++) {
  written++;
  writer.write({ kind: 'sample', at: 1_700_000_000 + written, metric: 'm', value: written });
}
const end = { endedAt: now, interrupted: false, reason: 'duration', ownCpuRatio: 0, startupCpu: 0 };
const { dropped } = await writer.end({ ...end, samples: 0, late: 0, dropped: 0 }, []);
const recording = await openRecording(directory);
const values = [...(recording.series('m')[0]?.value ?? [])];
const report = { written, dropped, failures, problems: recording.problems, gaps: recording.gaps };
process.stdout.write(JSON.stringify({ ...report, kept: values.length, last: values.at(-1) }));
