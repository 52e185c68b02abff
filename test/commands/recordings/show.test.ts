import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { main } from '../../../src/cli.ts';
import { ATTR, SPAN } from '../../../src/core/semconv.ts';
import type { RunEnd, Span } from '../../../src/core/types.ts';
import { openRecordingWriter } from '../../../src/recording/writer.ts';
import { delays, runStart, STARTED_AT } from '../../report/sample-report.ts';
import { fakeEnvironment } from '../fake-environment.ts';

const END: RunEnd = {
  endedAt: STARTED_AT + 10,
  interrupted: false,
  reason: 'duration',
  ownCpuRatio: 0.01,
  startupCpu: 0.3,
  targetPaused: 0,
  samples: 1000,
  late: 0,
  dropped: 0,
};

function block(from: number, seconds: number): Span {
  return {
    kind: 'span',
    name: SPAN.blocked,
    from,
    to: from + seconds,
    attributes: {
      [ATTR.pid]: 4312,
      [ATTR.threadId]: 4312,
      [ATTR.durationMin]: seconds - 0.004,
      [ATTR.durationMax]: seconds + 0.004,
      [ATTR.basis]: 'callback',
      [ATTR.starved]: false,
      [ATTR.open]: false,
      [ATTR.stackShares]: [`a1=${seconds}`],
    },
  };
}

let folder: string;

async function record(name: string, blocks: readonly Span[], end: RunEnd | null): Promise<void> {
  const directory = join(folder, name);
  const writer = await openRecordingWriter({ directory, start: runStart, env: {} });
  writer.write({
    kind: 'stack',
    at: STARTED_AT,
    id: 'a1',
    frames: [{ function: 'Reranker.score', file: '/srv/app/rerank.py', line: 88 }],
  });
  for (const span of blocks) writer.write(span);
  writer.write(delays([0.001, 0.002]));
  await (end === null ? writer.close() : writer.end(end, []));
}

async function show(...argv: string[]): Promise<{ code: number; out: string; err: string }> {
  const environment = fakeEnvironment({ cwd: folder });
  const code = await main(['show', ...argv], environment);
  return { code, out: environment.out(), err: environment.err() };
}

beforeAll(async () => {
  folder = mkdtempSync(join(tmpdir(), 'trace-show-'));
  await record('quiet', [], END);
  await record('blocked', [block(STARTED_AT + 1, 0.2), block(STARTED_AT + 2, 0.84)], END);
  await record('killed', [], null);
  await record('odd#F1', [], END);
  writeFileSync(join(folder, 'notes.txt'), 'not a recording\n'.repeat(3));
});

afterAll(() => rmSync(folder, { recursive: true }));

describe('trace show', () => {
  it('computes the findings afresh and exits 1 when there is a verdict', async () => {
    const { code, out, err } = await show('blocked');
    expect({ code, err }).toEqual({ code: 1, err: '' });
    expect(out).toMatch(/^BLOCKED: the event loop of pid 4312 \(python 3\.11\.7/);
    expect(out.replaceAll(/\s+/g, ' ')).toContain('stood still 2 times, worst 836–844 ms');
    expect(out).toContain('trace show blocked\n');
  });

  it('exits 0 for a quiet one, and for --exit-zero', async () => {
    expect(await show('quiet')).toMatchObject({ code: 0, err: '' });
    expect(await show('blocked', '--exit-zero')).toMatchObject({ code: 0 });
  });

  it('prints one JSON document', async () => {
    const { code, out } = await show('blocked', '--json');
    expect(code).toBe(1);
    expect(JSON.parse(out)).toMatchObject({
      schema_version: 1,
      command: 'attach',
      recording: 'blocked',
      findings: [{ id: 'F1', kind: 'loop-blocked', measure: { count: 2 } }],
    });
    expect((await show('blocked', '-f', 'json')).out).toBe(out);
  });

  it('shows one finding by its address', async () => {
    expect(await show('blocked#F1')).toMatchObject({ code: 1 });
    expect(await show('blocked#F9')).toMatchObject({
      code: 3,
      out: '',
      err: 'trace: no finding F9 in blocked\n       It has F1.\n',
    });
    expect(await show('blocked#H1')).toMatchObject({ code: 3 });
    expect((await show('quiet#F1')).err).toContain('It has no findings.');
  });

  it('takes a folder at its name when the name looks like an address', async () => {
    expect(await show('odd#F1')).toMatchObject({ code: 0, err: '' });
  });

  it('says that a recording has no end', async () => {
    const { code, out } = await show('killed');
    expect(code).toBe(0);
    expect(out).toContain('Not seen');
    expect(out).toContain('its end was not recorded');
  });

  it('says what is not a recording, and what is not there', async () => {
    expect(await show('nowhere')).toMatchObject({ code: 3, out: '' });
    expect(await show('notes.txt')).toMatchObject({ code: 3, out: '' });
  });

  it('takes exactly one recording', async () => {
    expect(await show()).toMatchObject({ code: 2 });
    expect(await show('quiet', 'blocked')).toMatchObject({ code: 2 });
  });
});
