import { mkdtemp, readFile, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { EVENT, METRIC, SPAN } from '../../src/core/semconv.ts';
import { RECORDING_SCHEMA_VERSION } from '../../src/recording/format.ts';
import { openRecording } from '../../src/recording/reader.ts';
import { openRecordingWriter } from '../../src/recording/writer.ts';

const PAGE = join(import.meta.dirname, '..', '..', 'docs', 'recording-format.md');

let root: string;
let page: string;
let example: string;
beforeAll(async () => {
  root = await mkdtemp(join(tmpdir(), 'tracewright-'));
  page = await readFile(PAGE, 'utf8');
  example = /```jsonl\n([\s\S]*?)```/.exec(page)?.[1] ?? '';
  await writeFile(join(root, 'telemetry.jsonl'), example);
});
afterAll(() => rm(root, { recursive: true, force: true }));

describe('the example in docs/recording-format.md', () => {
  it('is a whole recording without problems', async () => {
    const recording = await openRecording(root);
    expect(recording.problems).toEqual([]);
    expect(recording.ours).toBe(true);
    expect(recording.end?.reason).toBe('duration');
    expect(recording.findings.map((finding) => finding.id)).toEqual(['F1']);
    expect(recording.gaps).toHaveLength(1);
    const [span] = recording.spans(SPAN.blocked);
    expect(recording.stack(String(span?.attributes['tracewright.stack.id']))).toHaveLength(2);
  });

  it('is what the writer writes for what is in it', async () => {
    const { start, end, findings, gaps, ...recording } = await openRecording(root);
    const directory = join(root, 'again');
    const writer = await openRecordingWriter({ directory, start, env: {} });
    const [span] = recording.spans(SPAN.blocked);
    const frames = recording.stack('52e43367fc93dd95');
    if (span === undefined || frames === undefined || end === null) throw new Error('not read');
    writer.write({ kind: 'stack', at: start.startedAt + 0.2, id: '52e43367fc93dd95', frames });
    for (const gap of gaps) writer.write(gap);
    for (const { name } of [METRIC.memoryUsage, METRIC.cpuTime])
      for (const { attributes, at, value } of recording.series(name))
        writer.write({
          kind: 'sample',
          at: at[0] ?? 0,
          metric: name,
          value: value[0] ?? 0,
          attributes,
        });
    for (const histogram of recording.histograms(METRIC.loopDelay.name)) writer.write(histogram);
    writer.write(span);
    await writer.end(end, findings);
    const again = await readFile(join(directory, 'telemetry.jsonl'), 'utf8');
    expect(withoutDescriptions(again)).toBe(withoutDescriptions(example));
  });
});

/** The wording of a metric's description is no part of the format. */
function withoutDescriptions(lines: string): string {
  return lines.replace(/"description":"[^"]*"/g, '"description":""');
}

it('docs/recording-format.md names the schema version and every record with a body of its own', () => {
  expect(page).toContain(`\`schemaVersion\` is ${RECORDING_SCHEMA_VERSION}.`);
  const { runStart, runEnd, stack, gap, finding, snapshot } = EVENT;
  for (const name of [runStart, runEnd, stack, gap, finding, snapshot])
    expect(page).toContain(`| \`${name}\` |`);
});
