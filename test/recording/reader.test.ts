import { execFileSync } from 'node:child_process';
import {
  appendFile,
  mkdir,
  mkdtemp,
  readFile,
  readdir,
  rm,
  symlink,
  truncate,
  writeFile,
} from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { gzipSync } from 'node:zlib';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { METRIC } from '../../src/core/semconv.ts';
import type { RunStart } from '../../src/core/types.ts';
import { listRecordings } from '../../src/recording/inventory.ts';
import { openRecording } from '../../src/recording/reader.ts';
import { openRecordingWriter } from '../../src/recording/writer.ts';
import { END, START, observations } from './observations.ts';

let root: string;
beforeEach(async () => {
  root = await mkdtemp(join(tmpdir(), 'tracewright-'));
});
afterEach(() => rm(root, { recursive: true, force: true }));

/** A recording of ten seconds with one reading each; gives its folder. */
async function recorded(
  options: { start?: RunStart; ended?: boolean; segmentBytes?: number } = {},
): Promise<string> {
  const { start = START, ended = true, segmentBytes = 2 ** 26 } = options;
  const directory = join(root, 'recording');
  const writer = await openRecordingWriter({ directory, start, env: {}, segmentBytes });
  for (let n = 0; n < 10; n++) {
    const at = START.startedAt + n;
    writer.write({ kind: 'sample', at, metric: METRIC.fds.name, value: n });
    await writer.flush();
  }
  await (ended ? writer.end(END, []) : writer.close());
  return directory;
}

const telemetry = (directory: string) => join(directory, 'telemetry.jsonl');

async function valuesOf(path: string): Promise<number[]> {
  const [series] = (await openRecording(path)).series(METRIC.fds.name);
  return [...(series?.value ?? [])];
}

async function file(name: string, content: string | Buffer): Promise<string> {
  const path = join(root, name);
  await writeFile(path, content);
  return path;
}

describe('a recording', () => {
  it('is opened by its folder, by its file, and compressed', async () => {
    const directory = await recorded();
    expect(await valuesOf(directory)).toHaveLength(10);
    expect(await valuesOf(telemetry(directory))).toHaveLength(10);
    const gzipped = gzipSync(await readFile(telemetry(directory)));
    expect(await valuesOf(await file('copy.jsonl.gz', gzipped))).toHaveLength(10);
  });

  it('in several segments is one, whichever file is named', async () => {
    const directory = await recorded({ segmentBytes: 3000 });
    const names = (await readdir(directory)).filter((name) => name !== '.gitignore').toSorted();
    expect(names.length).toBeGreaterThan(2);
    expect(names[0]).toBe('telemetry.0001.jsonl.gz');
    expect(names.at(-1)).toBe('telemetry.jsonl.gz');
    expect(await valuesOf(directory)).toEqual([0, 1, 2, 3, 4, 5, 6, 7, 8, 9]);
    expect(await valuesOf(join(directory, 'telemetry.0001.jsonl.gz'))).toHaveLength(10);
    expect((await openRecording(directory)).problems).toEqual([]);
  });

  it('whose compression was cut short by a kill is read from the plain segment', async () => {
    const directory = await recorded({ segmentBytes: 3000 });
    const name = (await readdir(directory)).find((entry) => /\d\.jsonl$/.test(entry));
    const plain = await readFile(join(directory, name ?? ''));
    await writeFile(join(directory, `${name}.gz`), gzipSync(plain).subarray(0, 20));
    await writeFile(join(directory, `${name}.gz.partial`), 'x');
    const recording = await openRecording(directory);
    expect(recording.problems).toEqual([]);
    expect(recording.end).not.toBeNull();
  });
});

describe('a damaged recording', () => {
  it('without an end says that its writer was killed, and ends where it was last seen', async () => {
    const recording = await openRecording(await recorded({ ended: false }));
    expect(recording.end).toBeNull();
    expect(recording.endedAt).toBe(START.startedAt + 9);
    expect(recording.problems).toEqual([
      'the run has no end: its writer was killed or is still running',
    ]);
  });

  it('cut anywhere in its last line loses that line alone, and says how much', async () => {
    const path = telemetry(await recorded({ ended: false }));
    const whole = await readFile(path);
    const lastLine = whole.lastIndexOf('\n', whole.length - 2) + 1;
    for (const kept of [1, 7, 100, whole.length - lastLine - 2]) {
      await writeFile(path, whole);
      await truncate(path, lastLine + kept);
      const recording = await openRecording(path);
      expect(recording.series(METRIC.fds.name)[0]?.value).toHaveLength(9);
      expect(recording.end).toBeNull();
      expect(recording.problems[0]).toBe(
        `the last line is cut: ${kept} bytes ignored, the writer was probably killed`,
      );
    }
  });

  it('cut between its last line and the newline loses nothing', async () => {
    const path = telemetry(await recorded());
    await truncate(path, (await readFile(path)).length - 1);
    const recording = await openRecording(path);
    expect(recording.problems).toEqual([]);
    expect(recording.end).toEqual(END);
  });

  it('with corrupted lines in the middle skips and counts them', async () => {
    const path = telemetry(await recorded());
    const lines = (await readFile(path, 'utf8')).split('\n');
    lines[3] = `${lines[3]?.slice(0, 50)}\0\0\0`;
    lines[5] = '{"resourceMetrics":[{"scopeMetrics":7}]}';
    lines[6] = '{"something": "else"}';
    lines[7] = '';
    await writeFile(path, lines.join('\n'));
    const recording = await openRecording(path);
    expect(recording.series(METRIC.fds.name)[0]?.value).toHaveLength(6);
    expect(recording.problems).toEqual([
      'corrupted lines ignored: 1',
      'lines that are not OTLP ignored: 1',
    ]);
  });

  it('with a damaged compressed segment keeps what could be read', async () => {
    const directory = await recorded();
    const gzipped = gzipSync(await readFile(telemetry(directory)));
    const path = await file('cut.jsonl.gz', gzipped.subarray(0, gzipped.length - 30));
    const recording = await openRecording(path);
    expect(recording.problems).toContainEqual(
      expect.stringMatching(/^a compressed file is damaged: /),
    );
  });

  it('survives every kind of nonsense in the place of a field', async () => {
    const path = telemetry(await recorded());
    const writer = await openRecordingWriter({
      directory: join(root, 'rich'),
      start: START,
      env: {},
    });
    for (const observation of observations(7, 60)) writer.write(observation);
    await writer.end(END, []);
    const lines = (await readFile(join(root, 'rich', 'telemetry.jsonl'), 'utf8'))
      .trim()
      .split('\n');
    const nonsense = [null, true, -1, 1e300, 'x', [], [null], {}, { values: 3 }, [[]]];
    for (const line of lines.slice(1))
      for (const broken of breakages(JSON.parse(line), nonsense))
        await appendFile(path, `${JSON.stringify(broken)}\n`);
    await expect(openRecording(path)).resolves.toBeDefined();
  });
});

describe('a recording that was made to keep its reader', () => {
  const MIB = 2 ** 20;
  /** A gibibyte of a byte, as one megabyte of gzip: each member is a whole file of its own. */
  const gibibyte = (byte: string): readonly Buffer[] => {
    const member = gzipSync(Buffer.alloc(64 * MIB, byte));
    return Array.from({ length: 16 }, () => member);
  };

  it.each([
    ['lines of nothing', '\n', 'it has too many lines'],
    ['one line of nothing', 'x', 'it expands to more than 200 times its size'],
  ])('by a gibibyte of %s is read and listed without it', async (_what, byte, why) => {
    const directory = await recorded();
    const whole = gzipSync(await readFile(telemetry(directory)));
    await rm(telemetry(directory));
    const path = `${telemetry(directory)}.gz`;
    await writeFile(path, Buffer.concat([whole, ...gibibyte(byte)]));
    const recording = await openRecording(directory);
    expect(recording.series(METRIC.fds.name)[0]?.value).toHaveLength(10);
    expect(recording.problems).toContain(`a file was read in part: ${why}`);
    const [summary] = await listRecordings([directory]);
    expect(summary).toMatchObject({ start: { command: START.command }, end: END });
  });

  it('by a line without an end, as in a sparse file, is read without it', async () => {
    const directory = await recorded();
    await truncate(telemetry(directory), 64 * 1024 * MIB);
    const recording = await openRecording(directory);
    expect(recording.series(METRIC.fds.name)[0]?.value).toHaveLength(10);
    expect(recording.problems).toContain('a file was read in part: it has a line without an end');
  });

  it('by nothing but lines of nothing is said to hold no telemetry', async () => {
    const path = await file('telemetry.jsonl.gz', Buffer.concat(gibibyte('\n')));
    await expect(openRecording(path)).rejects.toMatchObject({
      code: 'ERR_NOT_A_RECORDING',
      message: expect.stringMatching(/holds no telemetry .*: it has too many lines$/) as string,
    });
  });

  it('by lines of something else is read until there are too many', async () => {
    const directory = await recorded();
    await appendFile(telemetry(directory), '{}\n'.repeat(300_000));
    const recording = await openRecording(directory);
    expect(recording.series(METRIC.fds.name)[0]?.value).toHaveLength(10);
    expect(recording.problems).toContain(
      'a file was read in part: it holds 100000 lines of something else',
    );
  });

  it('by a line that is dear to parse is read without it', async () => {
    const directory = await recorded();
    const deep = `{"resourceLogs":${'['.repeat(1e6)}${']'.repeat(1e6)}}`;
    await appendFile(telemetry(directory), `${deep}\n`);
    const recording = await openRecording(directory);
    expect(recording.series(METRIC.fds.name)[0]?.value).toHaveLength(10);
    expect(recording.problems).toEqual(['lines that are too deep or too wide ignored: 1']);
    expect((await listRecordings([directory]))[0]?.end).toEqual(END);
  });
});

it('values nested a hundred thousand deep cost nothing but themselves', async () => {
  const path = telemetry(await recorded());
  const deep = `${'{"arrayValue":{"values":['.repeat(1e5)}${']}}'.repeat(1e5)}`;
  const attributes = `"attributes":[{"key":"a","value":${deep}}]`;
  const point = `{"timeUnixNano":"1700000000000000000","asDouble":1,${attributes}}`;
  const metrics = `"metrics":[{"name":"deep","gauge":{"dataPoints":[${point}]}}]`;
  await appendFile(path, `{"resourceMetrics":[{"scopeMetrics":[{${metrics}}]}]}\n`);
  const spans = `"spans":[{"name":"deep","startTimeUnixNano":"1","endTimeUnixNano":"2",${attributes}}]`;
  await appendFile(path, `{"resourceSpans":[{"scopeSpans":[{${spans}}]}]}\n`);
  const recording = await openRecording(path);
  expect(recording.series(METRIC.fds.name)[0]?.value).toHaveLength(10);
});

/** The value with each of its inner parts in turn replaced by some nonsense. */
function breakages(value: unknown, nonsense: readonly unknown[]): unknown[] {
  if (typeof value !== 'object' || value === null) return [];
  return Object.entries(value)
    .slice(0, 3)
    .flatMap(([key, item], i) => {
      const copy = (replacement: unknown): unknown =>
        Array.isArray(value)
          ? value.with(Number(key), replacement)
          : { ...value, [key]: replacement };
      return [
        copy(nonsense[(key.length + i) % nonsense.length]),
        ...breakages(item, nonsense.toReversed()).map(copy),
      ];
    });
}

describe('what is no recording', () => {
  it.each([
    ['missing', 'ERR_RECORDING_NOT_FOUND', 'is not there'],
    ['missing/telemetry.jsonl', 'ERR_RECORDING_NOT_FOUND', 'is not there'],
    ['folder', 'ERR_RECORDING_NO_TELEMETRY', 'holds no telemetry.jsonl'],
  ])('%s: %s', async (name, code, message) => {
    await mkdir(join(root, 'folder'));
    await expect(openRecording(join(root, name))).rejects.toMatchObject({
      code,
      exitCode: 3,
      message: expect.stringContaining(message) as string,
    });
  });

  it.each([
    ['a FIFO', 'it is not a', (path: string) => execFileSync('mkfifo', [path])],
    ['a device without end', 'it is not a', (path: string) => symlink('/dev/zero', path)],
    ['a folder', 'it is a folder', (path: string) => mkdir(path)],
    ['a loop of links', 'ELOOP', (path: string) => symlink('telemetry.jsonl', path)],
  ] as const)('%s in the place of a file is said, and not waited for', async (_, why, put) => {
    await mkdir(join(root, 'folder'));
    const path = join(root, 'folder', 'telemetry.jsonl');
    await put(path);
    const message = expect.stringContaining(why) as string;
    const refused = { name: 'TraceError', exitCode: 3, message };
    await expect(openRecording(join(root, 'folder'))).rejects.toMatchObject(refused);
    // A folder of that name is looked into.
    if (why !== 'it is a folder') await expect(openRecording(path)).rejects.toMatchObject(refused);
  });

  const cut = '{"resourceLogs":[{"resource":{"attributes":[{"key":"serv';
  it.each<[string, string | Buffer, string]>([
    ['nothing', '', 'is empty'],
    ['blank lines', '\n \n', 'is empty'],
    ['one cut line', cut, 'holds no complete line'],
    ['less than the first key', '{"resou', 'holds no complete line'],
    [
      'a log',
      'INFO started\nINFO \u001b[2Jstopped\n',
      'it looks like text that begins "INFO started',
    ],
    ['an ELF file', Buffer.from('7f454c4602010100', 'hex'), 'an ELF program'],
    ['a zip', Buffer.from('504b030414000000', 'hex'), 'a zip archive'],
    ['unnamed gzip', gzipSync('{}'), 'a gzip file'],
    ['a Chrome trace', '{"traceEvents":[]}', 'a Chrome trace'],
    ['our report', '{\n  "schema_version": 1\n}', 'JSON, but not OTLP'],
    ['our report on a line', '{"schema_version":1}', 'a report of trace (--json)'],
    ['other JSON', '{"a":1}\n{"b":2}\n', 'JSON, but not OTLP'],
    ['zeros', Buffer.alloc(5000), 'binary data'],
    ['one endless line', Buffer.alloc(40 * 2 ** 20, 'x'), 'text that begins "xxx'],
  ])('%s ends with exit code 3 and says what it is', async (_, content, message) => {
    const error: unknown = await openRecording(await file('f', content)).catch((e: unknown) => e);
    expect(error).toMatchObject({
      name: 'TraceError',
      exitCode: 3,
      message: expect.stringContaining(message) as string,
    });
    expect((error as Error).message).not.toContain('\u001b');
  });
});

it('a recording of a newer schema is refused with exit code 5 and the version that reads it', async () => {
  const start = { ...START, schemaVersion: 2, toolVersion: '3.1.4' };
  const directory = await recorded({ start });
  const gzipped = gzipSync(await readFile(telemetry(directory)));
  for (const path of [directory, await file('new.jsonl.gz', gzipped)])
    await expect(openRecording(path)).rejects.toMatchObject({
      code: 'ERR_RECORDING_TOO_NEW',
      exitCode: 5,
      message: expect.stringContaining('schema version 2, written by tracewright 3.1.4') as string,
      remedy: 'Read it with tracewright 3.1.4 or newer.',
    });
});

describe('a file of the OpenTelemetry Collector', () => {
  // Written by the JSON marshalers of the Collector's pdata 1.70.0, which its file exporter uses.
  const path = join(import.meta.dirname, 'collector-pdata-1.70.0.jsonl');

  it('opens, says that it is not ours, and shows what is in it', async () => {
    const recording = await openRecording(path);
    expect(recording.ours).toBe(false);
    expect(recording.start).toMatchObject({ targets: [], startedAt: 1_544_712_660 });
    expect(recording.end).toBeNull();
    expect(recording.metricNames()).toEqual([
      'http.server.duration',
      'process.cpu.time',
      'queue.size',
      'rpc.latency',
    ]);
    expect(recording.problems).toEqual([
      'not written by tracewright (no run-start record): 4 metrics, 1 span names, 1 event names',
      'explicit-bucket histogram and summary points ignored: 1',
    ]);
  });

  it('keeps series of different services apart, by the identity in their resource', async () => {
    const recording = await openRecording(path);
    const series = recording.series('process.cpu.time');
    expect(series.map(({ attributes, value }) => [attributes['service.name'], ...value])).toEqual([
      ['shop', 3],
      ['cart', 4.5],
    ]);
    expect(recording.series('process.cpu.time', { 'service.name': 'cart' })).toHaveLength(1);
    expect(recording.histograms('rpc.latency')[0]?.buckets).toMatchObject({
      count: 3,
      scale: 1,
      counts: [1, 1],
      zeroCount: 1,
    });
    expect(recording.spans('GET /cart')).toHaveLength(1);
  });
});
