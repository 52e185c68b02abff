import { existsSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, describe, expect, it } from 'vitest';
import { main } from '../../../src/cli.ts';
import { detectAll } from '../../../src/analysis/detectors.ts';
import type { StopSignal } from '../../../src/commands/command-line/command.ts';
import type { ResultOptions } from '../../../src/commands/load/options.ts';
import { Judgement } from '../../../src/commands/load/result.ts';
import type { LoadRun } from '../../../src/commands/load/settings.ts';
import type { LoadResult, RequestRecord } from '../../../src/core/load-types.ts';
import { withLoadResult } from '../../../src/load/observe/read-back.ts';
import { ResultBuilder } from '../../../src/load/results/builder.ts';
import { memoryRecording } from '../../../src/recording/memory.ts';
import { batch, failure, histogram, meta, MONO, request } from '../../load/results/sample-run.ts';
import { runStart } from '../../report/sample-report.ts';
import { fakeEnvironment } from '../fake-environment.ts';

/* Exit codes and files of a result, whatever run gave it: the contract is in docs/architecture.md. */

const folder = mkdtempSync(join(tmpdir(), 'tracewright-judgement-'));
afterAll(() => rmSync(folder, { recursive: true, force: true }));

const OPTIONS: ResultOptions = {
  format: 'text',
  files: { json: null, csv: null, junit: null },
  overwrite: false,
  failOn: [],
  baseline: null,
  exitZero: false,
};
const PLAIN = { color: false, width: 80, unicode: true };

function resultOf(
  requests: readonly RequestRecord[],
  change: {
    readonly lag?: number;
    readonly coreShare?: number;
    readonly part?: number;
    readonly parts?: number;
    readonly complete?: boolean;
  } = {},
): LoadResult {
  const { lag, coreShare, part = 0, parts = 1, complete = true } = change;
  const builder = new ResultBuilder({ ...meta, parts, part: { ...meta.part, index: part } });
  builder.stage({ stage: 0, what: 'begun', at: MONO });
  builder.add(
    batch(requests, {
      to: MONO + 10,
      ...(coreShare === undefined ? {} : { coreShare }),
      ...(lag === undefined ? {} : { readLag: histogram(Array.from({ length: 1000 }, () => lag)) }),
    }),
  );
  builder.stage({ stage: 0, what: 'sending-ended', at: MONO + 10 });
  builder.stage({ stage: 0, what: 'drained', at: MONO + 10 });
  return builder.result({ interrupted: false, complete });
}

const many = (count: number, make: (index: number) => RequestRecord): RequestRecord[] =>
  Array.from({ length: count }, (_, index) => make(index));
const good = (count = 400): RequestRecord[] =>
  many(count, (index) => request({ index, scheduledAt: MONO + (index * 9) / count }));

interface Case {
  readonly result: LoadResult;
  readonly options?: Partial<ResultOptions>;
  readonly signal?: StopSignal;
}

async function judge({ result, options, signal }: Case) {
  const environment = fakeEnvironment({ cwd: folder });
  const view = withLoadResult(memoryRecording({ ...runStart, command: 'load' }).view(), result);
  const run: LoadRun = {
    result,
    view,
    findings: detectAll(view),
    recording: null,
    traceUrl: null,
    signal: signal ?? null,
  };
  const judgement = await Judgement.open({ ...OPTIONS, ...options }, environment);
  const code = await judgement.conclude(run, { surface: PLAIN, problems: [] });
  return { code, out: environment.out(), err: environment.err() };
}

describe('the exit code', () => {
  it('is 0 for a run that found nothing', async () => {
    const { code, out, err } = await judge({ result: resultOf(good()) });
    expect({ code, err }).toEqual({ code: 0, err: '' });
    expect(out).toContain('TTFT');
  });

  it('is 1 when requests failed, and 0 with --exit-zero', async () => {
    const result = resultOf([
      ...good(100),
      ...many(100, (index) => failure({ class: 'http.5xx', status: 500 }, { index: 100 + index })),
    ]);
    expect((await judge({ result })).code).toBe(1);
    expect((await judge({ result, options: { exitZero: true } })).code).toBe(0);
  });

  it('is 1 when a --fail-on holds, and 0 when it does not', async () => {
    const result = resultOf(good());
    expect((await judge({ result, options: { failOn: ['ttft.p50>50ms'] } })).code).toBe(1);
    expect((await judge({ result, options: { failOn: ['ttft.p50>500ms'] } })).code).toBe(0);
  });

  it('is 3 when nobody was there, or nothing of this name', async () => {
    const refused = resultOf(many(30, (index) => failure({ class: 'refused' }, { index })));
    const { code, err } = await judge({ result: refused });
    expect(code).toBe(3);
    expect(err).toContain('no connection to http://127.0.0.1:8000/v1/chat/completions in 30 tries');
    const unknown = resultOf(
      many(30, (index) =>
        failure(
          { class: 'http.4xx', status: 404, detail: 'no model \u001b[2J' },
          { index, status: 404 },
        ),
      ),
    );
    const missing = await judge({ result: unknown });
    expect(missing.code).toBe(3);
    expect(missing.err).toContain('answered with 404: check the path and the model (-m)');
    expect(missing.err).toContain('no model \\x1b[2J');
  });

  it('is 3 also where being refused again and again took a whole core', async () => {
    const refused = resultOf(
      many(30, (index) => failure({ class: 'refused' }, { index })),
      { coreShare: 1 },
    );
    expect((await judge({ result: refused })).code).toBe(3);
  });

  it('is 6 when the client was the limit, whatever else was found', async () => {
    const result = resultOf(good(), { lag: 0.08 });
    expect((await judge({ result })).code).toBe(6);
    expect(
      (await judge({ result, options: { failOn: ['ttft.p50>1ms'], exitZero: true } })).code,
    ).toBe(6);
  });

  it('is 6, and not 3, when this machine had no descriptor for any request', async () => {
    const none = resultOf(
      many(30, (index) => failure({ class: 'client', detail: 'connect EMFILE' }, { index })),
    );
    const { code, out, err } = await judge({ result: none });
    expect({ code, err }).toEqual({ code: 6, err: '' });
    expect(out).toMatch(/^CLIENT LIMITED/);
  });

  it('is 6 when nothing was answered or failed, and when a gate cannot tell', async () => {
    expect((await judge({ result: resultOf([]) })).code).toBe(6);
    const few = await judge({
      result: resultOf(good(10)),
      options: { failOn: ['ttft.p99>101ms'] },
    });
    expect(few.code).toBe(6);
  });

  it('is 130 or 143 after a signal', async () => {
    const result = resultOf(good());
    expect((await judge({ result, signal: 'SIGINT' })).code).toBe(130);
    expect((await judge({ result, signal: 'SIGTERM' })).code).toBe(143);
    expect((await judge({ result: resultOf([]), signal: 'SIGINT' })).code).toBe(130);
  });
});

describe('what is judged by', () => {
  it('is read before the run', async () => {
    const open = (options: Partial<ResultOptions>) => judge({ result: resultOf(good()), options });
    await expect(open({ failOn: ['ttft>5'] })).rejects.toMatchObject({ exitCode: 2 });
    await expect(open({ failOn: ['ttft.p99>+5%'] })).rejects.toThrow('is relative to what?');
    await expect(open({ baseline: 'missing.json' })).rejects.toMatchObject({ exitCode: 3 });
    writeFileSync(join(folder, 'odd.json'), '{}');
    await expect(open({ baseline: 'odd.json' })).rejects.toMatchObject({ exitCode: 5 });
  });

  it('may be an earlier result', async () => {
    const before = { ...OPTIONS.files, json: 'before.json' };
    await judge({ result: resultOf(good()), options: { files: before } });
    const slower = resultOf(
      many(400, (index) => {
        const scheduledAt = MONO + (index * 9) / 400;
        return request({ index, scheduledAt, firstOutputAt: scheduledAt + 0.2 });
      }),
    );
    const options = { baseline: 'before.json', failOn: ['ttft.p50>+15%'] };
    const { code, out } = await judge({ result: slower, options });
    expect(code).toBe(1);
    expect(out).toContain('before.json');
    expect((await judge({ result: resultOf(good()), options })).code).toBe(0);
  });
});

describe('files', () => {
  it('get the result in their forms', async () => {
    const files = { json: 'all.json', csv: 'all.csv', junit: 'all.xml' };
    const { code } = await judge({ result: resultOf(good()), options: { files } });
    expect(code).toBe(0);
    expect(JSON.parse(readFileSync(join(folder, 'all.json'), 'utf8'))).toMatchObject({
      schema_version: 1,
      command: 'load',
    });
    expect(readFileSync(join(folder, 'all.csv'), 'utf8').split('\n').length).toBeGreaterThan(1);
    expect(readFileSync(join(folder, 'all.xml'), 'utf8')).toMatch(/^<\?xml/);
  });

  it('are not replaced, and are tried before the run', async () => {
    writeFileSync(join(folder, 'there.json'), 'mine');
    const open = (path: string, overwrite = false) =>
      judge({
        result: resultOf(good()),
        options: { files: { ...OPTIONS.files, json: path }, overwrite },
      });
    await expect(open('there.json')).rejects.toThrow('is there already');
    expect(readFileSync(join(folder, 'there.json'), 'utf8')).toBe('mine');
    await expect(open('no/such/folder.json')).rejects.toThrow('cannot write');
    await expect(open('.')).rejects.toThrow('is a folder');
    await open('there.json', true);
    expect(readFileSync(join(folder, 'there.json'), 'utf8')).toMatch(/^\{/);
    expect(existsSync(join(folder, 'no'))).toBe(false);
  });

  it.each([
    ['json', /^\{/],
    ['csv', /,/],
    ['junit', /^<\?xml/],
  ] as const)('and stdout can have the result as %s', async (format, beginning) => {
    const { out } = await judge({ result: resultOf(good()), options: { format } });
    expect(out).toMatch(beginning);
  });
});

describe('trace load merge', () => {
  async function part(index: number, parts: number, complete = true): Promise<string> {
    const name = `part-${index}-${parts}-${complete}.json`;
    await judge({
      result: resultOf(good(), { part: index, parts, complete }),
      options: { files: { ...OPTIONS.files, json: name }, overwrite: true },
    });
    return name;
  }

  async function merge(...args: string[]) {
    const environment = fakeEnvironment({ cwd: folder });
    const code = await main(['load', 'merge', ...args], environment);
    return { code, out: environment.out(), err: environment.err() };
  }

  it('adds up what several machines did', async () => {
    const { code, out, err } = await merge(await part(0, 2), await part(1, 2), '--json');
    expect({ code, err }).toEqual({ code: 0, err: '' });
    expect(JSON.parse(out)).toMatchObject({
      load: { requests: { ok: 800 }, parts: { missing: [] } },
    });
  });

  it('says which part is missing or was killed, and exits 6', async () => {
    const missing = await merge(await part(0, 3), await part(2, 3));
    expect(missing.code).toBe(6);
    expect(missing.err).toContain('the result is partial: part 2 of 3 is not there');
    const killed = await merge(await part(0, 2), await part(1, 2, false));
    expect(killed.code).toBe(6);
    expect(killed.err).toContain('part 2 (client-a) was killed');
  });

  it('judges by gates', async () => {
    const parts = [await part(0, 2), await part(1, 2)];
    expect((await merge(...parts, '--fail-on', 'ttft.p50>1ms')).code).toBe(1);
  });

  it('refuses what are no parts of one run, and flags that say how to send', async () => {
    expect(await merge(await part(0, 2), await part(0, 2))).toMatchObject({ code: 2, out: '' });
    expect((await merge()).code).toBe(2);
    expect((await merge('nothing.json')).code).toBe(3);
    const flag = await merge(await part(0, 1), '-c', '4');
    expect(flag.err).toContain('--concurrency says how to send, and merge sends nothing');
  });
});
