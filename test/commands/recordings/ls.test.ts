import {
  existsSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  rmSync,
  symlinkSync,
  utimesSync,
  writeFileSync,
} from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { gzipSync } from 'node:zlib';
import { Ajv2020 } from 'ajv/dist/2020.js';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { main } from '../../../src/cli.ts';
import { METRIC } from '../../../src/core/semconv.ts';
import { openRecordingWriter, type RecordingSink } from '../../../src/recording/writer.ts';
import { END, FINDING, START } from '../../recording/observations.ts';
import { fakeEnvironment } from '../fake-environment.ts';

const DAY = 86_400;
const NOW = Date.now() / 1e3;
let root: string;
let env: Readonly<Record<string, string>>;
beforeEach(() => {
  root = mkdtempSync(join(tmpdir(), 'trace-ls-'));
  env = { HOME: root, XDG_STATE_HOME: join(root, 'state') };
});
afterEach(() => rmSync(root, { recursive: true, force: true }));

const here = (...parts: string[]) => join(root, '.tracewright', ...parts);

async function open(path: string, daysAgo: number): Promise<RecordingSink> {
  const start = { ...START, startedAt: NOW - daysAgo * DAY };
  const writer = await openRecordingWriter({ directory: path, start, env: {} });
  writer.write({ kind: 'sample', at: start.startedAt + 5, metric: METRIC.fds.name, value: 1 });
  await writer.flush();
  return writer;
}

/** A recording of ten seconds, so many days ago. */
async function record(path: string, daysAgo: number): Promise<string> {
  const writer = await open(path, daysAgo);
  await writer.end({ ...END, endedAt: NOW - daysAgo * DAY + 10 }, [FINDING]);
  return path;
}

/** One whose writer was killed then. */
async function cut(path: string, daysAgo: number): Promise<string> {
  const writer = await open(path, daysAgo);
  await writer.close();
  const then = NOW - daysAgo * DAY;
  utimesSync(join(path, 'telemetry.jsonl'), then, then);
  return path;
}

interface Listed {
  readonly path: string;
  readonly state: string;
  readonly [key: string]: unknown;
}

async function run(...args: string[]): Promise<{ code: number; out: string; err: string }> {
  const environment = fakeEnvironment({ cwd: root, env });
  const code = await main(args, environment);
  return { code, out: environment.out(), err: environment.err() };
}

async function json(...args: string[]) {
  const { code, out } = await run(...args, '--json');
  const document = JSON.parse(out) as { recordings: Listed[]; kept?: number };
  const [verb] = args;
  const path = join(import.meta.dirname, '..', '..', '..', 'docs', 'schema', `${verb}.schema.json`);
  const validate = new Ajv2020({ strict: true, allowUnionTypes: true }).compile(
    JSON.parse(readFileSync(path, 'utf8')) as object,
  );
  expect(validate(document), JSON.stringify(validate.errors)).toBe(true);
  return { code, ...document };
}

describe('trace ls', () => {
  it('says where it looked when there is none', async () => {
    const { code, out } = await run('ls');
    expect(code).toBe(0);
    expect(out.replaceAll(/\s+/g, ' ')).toBe(`No recording in .tracewright, state/tracewright. `);
    expect((await json('ls')).recordings).toEqual([]);
  });

  it('lists the recordings of the default places, newest first, with what they came to', async () => {
    const old = await record(here('a'), 3);
    const fresh = await record(join(root, 'state', 'tracewright', 'b'), 1);
    const killed = await cut(here('c'), 2);
    writeFileSync(here('config.json'), '{}');
    mkdirSync(here('empty'));
    const { recordings } = await json('ls');
    expect(recordings.map(({ path, state }) => [path, state])).toEqual([
      [fresh, 'whole'],
      [killed, 'cut'],
      [old, 'whole'],
    ]);
    expect(recordings[0]).toMatchObject({
      command: 'attach',
      duration_s: expect.closeTo(10, 3) as number,
      end_reason: 'duration',
      targets: [{ pid: 4711, runtime: 'python', title: 'uvicorn app:app', role: null }],
      findings: { critical: 1, warning: 0, note: 0 },
    });
    expect(recordings[1]).toMatchObject({
      findings: null,
      duration_s: expect.closeTo(5, 3) as number,
    });
    const { out } = await run('ls');
    const lines = out.split('\n').slice(1, 4);
    expect(lines.map((line) => line.trim().split(/ {2,}/).slice(1))).toEqual([
      [
        'attach',
        '4711 uvicorn app:app',
        '10 s',
        '1 critical',
        expect.any(String),
        'whole',
        'state/tracewright/b',
      ],
      ['attach', '4711 uvicorn app:app', '5 s', '?', expect.any(String), 'cut', '.tracewright/c'],
      [
        'attach',
        '4711 uvicorn app:app',
        '10 s',
        '1 critical',
        expect.any(String),
        'whole',
        '.tracewright/a',
      ],
    ]);
  });

  it('knows one that is being written by its open file, however long ago it was written', async () => {
    const writer = await open(here('r'), 1);
    const then = NOW - DAY;
    utimesSync(here('r', 'telemetry.jsonl'), then, then);
    expect((await json('ls')).recordings).toMatchObject([{ state: 'running' }]);
    await writer.close();
    utimesSync(here('r', 'telemetry.jsonl'), then, then);
    expect((await json('ls')).recordings).toMatchObject([{ state: 'cut' }]);
  });

  it('takes folders, and one that is not there is an error', async () => {
    await record(join(root, 'x', 'one'), 1);
    expect((await json('ls', 'x')).recordings).toHaveLength(1);
    expect((await json('ls', 'x/one')).recordings).toHaveLength(1);
    const { code, err } = await run('ls', 'nowhere');
    expect(code).toBe(3);
    expect(err).toContain('nowhere is not there');
  });

  it('reads the end of a compressed one, and escapes what comes from outside', async () => {
    const directory = here('gz');
    const targets = START.targets.map((one) => ({ ...one, title: 'x\u001b[31m\u202e' }));
    const start = { ...START, targets };
    const writer = await openRecordingWriter({ directory, start, env: {} });
    await writer.end(END, [FINDING]);
    const plain = join(directory, 'telemetry.jsonl');
    writeFileSync(`${plain}.gz`, gzipSync(readFileSync(plain)));
    rmSync(plain);
    expect((await json('ls')).recordings).toMatchObject([{ state: 'whole' }]);
    const both = (await run('ls')).out + (await run('ls', '--json')).out;
    for (const obeyed of ['\u001b', '\u202e']) expect(both).not.toContain(obeyed);
  });

  it('lists what cannot be read for what it is', async () => {
    mkdirSync(here('broken'), { recursive: true });
    writeFileSync(here('broken', 'telemetry.jsonl'), '{"resourceLo');
    utimesSync(here('broken', 'telemetry.jsonl'), 1e9, 1e9);
    expect((await json('ls')).recordings).toMatchObject([
      { state: 'cut', command: null, targets: [], started_at: '2001-09-09T01:46:40.000Z' },
    ]);
  });
});

describe('trace clean', () => {
  it('has to be told what is old', async () => {
    const { code, err } = await run('clean');
    expect(code).toBe(2);
    expect(err).toContain('--older-than 7d');
    expect((await run('clean', '--older-than', 'never')).code).toBe(2);
  });

  it('removes what ended longer ago, and its folder', async () => {
    await record(here('old'), 8);
    await cut(here('killed'), 9);
    await record(here('new'), 6);
    const { code, recordings, kept } = await json('clean', '--older-than', '7d');
    expect(code).toBe(0);
    expect(kept).toBe(1);
    expect(recordings.map(({ path, outcome }) => [path, outcome])).toEqual([
      [here('old'), 'removed'],
      [here('killed'), 'removed'],
    ]);
    expect(readdirSync(here())).toEqual(['new']);
    expect((await run('clean', '--older-than', '7d')).out).toBe(
      'Nothing was removed; 1 recording kept.\n',
    );
  });

  it('removes nothing in a dry run', async () => {
    await record(here('old'), 8);
    const { recordings, kept } = await json('clean', '--older-than', '7d', '--dry-run');
    expect(recordings).toMatchObject([{ outcome: 'would_remove' }]);
    expect(kept).toBe(0);
    const { out } = await run('clean', '--older-than', '7d', '-n');
    expect(out).toMatch(/^would remove \.tracewright\/old \(.*\)\n\n1 recording would be removed/);
    expect(existsSync(here('old'))).toBe(true);
  });

  it('keeps the newest, whatever their age', async () => {
    for (const days of [10, 20, 30, 40]) await record(here(`d${days}`), days);
    await json('clean', '--older-than', '7d', '--keep', '2');
    expect(readdirSync(here()).toSorted()).toEqual(['d10', 'd20']);
    await json('clean', '--keep', '1');
    expect(readdirSync(here())).toEqual(['d10']);
  });

  it('leaves one that is being written alone, however old', async () => {
    const writer = await open(here('r'), 30);
    utimesSync(here('r', 'telemetry.jsonl'), NOW - 30 * DAY, NOW - 30 * DAY);
    expect((await json('clean', '--keep', '0')).recordings).toEqual([]);
    await writer.close();
    expect(existsSync(here('r', 'telemetry.jsonl'))).toBe(true);
  });

  it('leaves a folder that holds anything else, whole, and says why', async () => {
    const mine = await record(here('mine'), 8);
    writeFileSync(join(mine, 'notes.md'), 'what I found');
    const linked = await record(here('linked'), 8);
    symlinkSync('/etc/passwd', join(linked, 'telemetry.0009.jsonl'));
    const { code, recordings } = await json('clean', '--older-than', '7d');
    expect(code).toBe(1);
    expect(recordings.map(({ outcome, reason }) => [outcome, String(reason)])).toEqual(
      expect.arrayContaining([
        ['left', expect.stringContaining('holds notes.md')],
        ['left', expect.stringContaining('holds telemetry.0009.jsonl')],
      ]),
    );
    expect(readdirSync(mine)).toHaveLength(3);
    expect(existsSync('/etc/passwd')).toBe(true);
  });

  it('follows no link to a folder', async () => {
    const elsewhere = await record(join(root, 'elsewhere', 'r'), 8);
    mkdirSync(here(), { recursive: true });
    symlinkSync(elsewhere, here('link'));
    expect((await json('clean', '--keep', '0')).recordings).toEqual([]);
    // Named itself, it is listed, but what it points to is not deleted through it.
    const { code, recordings } = await json('clean', '--keep', '0', here('link'));
    expect(code).toBe(1);
    expect(recordings).toMatchObject([{ outcome: 'left' }]);
    expect(existsSync(join(elsewhere, 'telemetry.jsonl'))).toBe(true);
  });
});
