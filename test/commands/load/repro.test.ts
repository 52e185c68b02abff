import { mkdtempSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, expect, it } from 'vitest';
import { chooseRequests, writeRepro } from '../../../src/commands/load/repro.ts';
import type { LoadRun } from '../../../src/commands/load/settings.ts';
import { GENAI } from '../../../src/core/semconv-genai.ts';
import type { Span } from '../../../src/core/types.ts';
import { openRecordingWriter } from '../../../src/recording/writer.ts';
import { fakeEnvironment } from '../fake-environment.ts';

const LIMIT_MS = 60_000;
const START = 1_800_000_000;
let cwd = '';
beforeAll(() => {
  cwd = mkdtempSync(join(tmpdir(), 'trace-load-repro-'));
});
afterAll(() => rmSync(cwd, { recursive: true, force: true }));

function span(from: number, seconds: number, error: string | null = null): Span {
  const attributes = {
    [GENAI.inputTokens]: 12,
    ...(error === null ? {} : { 'error.type': error }),
  };
  return {
    kind: 'span',
    name: 'chat m',
    from: START + from,
    to: START + from + seconds,
    attributes,
  };
}

it('failed requests are chosen with those that were under way beside them, and no others', () => {
  const spans = [span(0, 1), span(2, 1), span(2.5, 1, '500'), span(3, 1), span(5, 1)];
  const found = chooseRequests(spans, []);
  expect(found).toMatchObject({ oracle: { kind: 'exception' }, what: '1 failed', concurrency: 2 });
  expect([...(found?.spans ?? [])].map(({ from }) => from - START)).toEqual([2.5, 2, 3]);
});

it('slow ones are far above the median; of a healthy run none is chosen', () => {
  const even = [0, 1, 2, 3, 4].map((at) => span(at, 0.5));
  expect(chooseRequests(even, [])).toBeNull();
  expect(chooseRequests([span(0, 0.01), span(1, 0.01), span(2, 0.05)], [])).toBeNull();
  expect(chooseRequests([], [])).toBeNull();
  const found = chooseRequests([...even, span(5, 2)], []);
  expect(found).toMatchObject({ oracle: { kind: 'head-of-line' }, what: '1 slow', concurrency: 1 });
});

it('answers of others are looked for in all requests', () => {
  const found = chooseRequests([span(0, 1, '500'), span(2, 1)], [{ code: 'TRC118' }]);
  expect(found).toMatchObject({ oracle: { kind: 'cross-talk' } });
  expect(found?.spans.size).toBe(2);
});

it(
  'the folder sends what was recorded; of a run in which nothing went wrong there is none',
  async () => {
    for (const [name, error] of [
      ['bad', '500'],
      ['good', null],
    ] as const) {
      const writer = await openRecordingWriter({
        directory: join(cwd, name),
        start: {
          schemaVersion: 1,
          toolVersion: '0.1.0',
          command: 'load',
          startedAt: START,
          traceId: '4bf92f3577b34da6a3ce929d0e0e4736',
          targets: [],
          collectors: [],
          settings: { url: 'http://127.0.0.1:9/v1/chat/completions', api: 'chat', model: 'm' },
        },
        env: {},
      });
      for (const one of [span(0, 1), span(2, 1, error), span(2.25, 1)]) writer.write(one);
      await writer.close();
    }
    const environment = fakeEnvironment({ cwd });
    const run = (name: string) =>
      ({ recording: join(cwd, name), findings: [] }) as unknown as LoadRun;
    expect(await writeRepro('again', run('bad'), environment)).toBe(0);
    expect(environment.err()).toContain('2 requests (1 failed');
    const parameters = JSON.parse(readFileSync(join(cwd, 'again', 'parameters.json'), 'utf8')) as {
      traffic: { requests: { offset_s: number }[] };
    };
    expect(parameters).toMatchObject({
      oracle: { kind: 'exception' },
      concurrency: 2,
      attempts: 2,
    });
    expect(parameters.traffic.requests.map((one) => one.offset_s)).toEqual([0, 0.25]);
    expect(await writeRepro('none', run('good'), environment)).toBe(0);
    expect(environment.err()).toContain('no folder was written');
    expect(await writeRepro('again', run('bad'), environment)).toBe(2);
  },
  LIMIT_MS,
);
