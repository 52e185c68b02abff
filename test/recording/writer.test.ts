import {
  chmod,
  chown,
  mkdir,
  mkdtemp,
  readFile,
  readdir,
  rm,
  stat,
  writeFile,
} from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, describe, expect, it, vi } from 'vitest';
import { ATTR, METRIC, SPAN } from '../../src/core/semconv.ts';
import type { Observation } from '../../src/core/types.ts';
import { openRecording } from '../../src/recording/reader.ts';
import { removeRecording } from '../../src/recording/remove.ts';
import {
  type RecordingSink,
  type RecordingWriterOptions,
  openRecordingWriter,
} from '../../src/recording/writer.ts';
import { END, START } from './observations.ts';

let root: string;
beforeEach(async () => {
  root = await mkdtemp(join(tmpdir(), 'tracewright-'));
});
afterEach(async () => {
  vi.useRealTimers();
  await rm(root, { recursive: true, force: true });
});

const open = (options: Partial<RecordingWriterOptions> = {}): Promise<RecordingSink> =>
  openRecordingWriter({ directory: join(root, 'r'), start: START, env: {}, ...options });

const sample = (n: number): Observation => ({
  kind: 'sample',
  at: START.startedAt + n,
  metric: METRIC.fds.name,
  value: n,
});

const blocked = (stack: string): Observation => ({
  kind: 'span',
  name: SPAN.blocked,
  from: START.startedAt,
  to: START.startedAt + 1,
  attributes: { [ATTR.stackShares]: [`${stack}=0.05`] },
});

async function lines(name = 'telemetry.jsonl'): Promise<Record<string, unknown>[]> {
  const text = await readFile(join(root, 'r', name), 'utf8');
  return text
    .trim()
    .split('\n')
    .map((line) => JSON.parse(line) as Record<string, unknown>);
}

describe('the folder of a recording', () => {
  it('is for its owner alone and hides itself from git', async () => {
    const writer = await open({ directory: join(root, 'a', 'b', 'c') });
    await writer.end(END, []);
    expect((await stat(join(root, 'a'))).mode & 0o777).toBe(0o700);
    expect((await stat(writer.directory)).mode & 0o777).toBe(0o700);
    expect((await stat(join(writer.directory, 'telemetry.jsonl'))).mode & 0o777).toBe(0o600);
    expect(await readFile(join(writer.directory, '.gitignore'), 'utf8')).toBe('*\n');
  });

  it('may be there if it is empty', async () => {
    await mkdir(join(root, 'r'));
    await (await open()).close();
    expect(await readdir(join(root, 'r'))).toContain('telemetry.jsonl');
  });

  it('is never one that holds something', async () => {
    await (await open()).close();
    await expect(open()).rejects.toMatchObject({ code: 'ERR_RECORDING_EXISTS', exitCode: 2 });
    const second = await open({ ifExists: 'suffix' });
    const third = await open({ ifExists: 'suffix' });
    expect([second.directory, third.directory]).toEqual([join(root, 'r-2'), join(root, 'r-3')]);
    await Promise.all([second.close(), third.close()]);
  });

  it('that cannot be made is an error that names it', async () => {
    await writeFile(join(root, 'file'), '');
    await expect(open({ directory: join(root, 'file', 'r') })).rejects.toMatchObject({
      code: 'ERR_RECORDING_NOT_WRITABLE',
      exitCode: 2,
      message: expect.stringContaining(join(root, 'file', 'r')) as string,
    });
  });

  it.runIf(process.getuid?.() === 0)('belongs to the caller of sudo', async () => {
    const home = join(root, 'home');
    await mkdir(home);
    await chown(home, 12345, 23456);
    const directory = join(home, 'a', 'b');
    const writer = await open({ directory, env: { SUDO_UID: '12345', SUDO_GID: '23456' } });
    await writer.end(END, []);
    const paths = [join(home, 'a'), directory, join(directory, '.gitignore')];
    for (const path of [...paths, join(directory, 'telemetry.jsonl')])
      expect(await stat(path)).toMatchObject({ uid: 12345, gid: 23456 });
    expect((await stat(root)).uid).toBe(0);
  });

  it('can be emptied for --force, unless it holds anything else', async () => {
    await (await open()).close();
    await removeRecording(join(root, 'r'));
    expect(await readdir(join(root, 'r'))).toEqual([]);
    await removeRecording(join(root, 'not-there'));
    await writeFile(join(root, 'r', 'telemetry.jsonl'), '');
    await writeFile(join(root, 'r', 'thesis.tex'), '');
    await expect(removeRecording(join(root, 'r'))).rejects.toThrow('holds thesis.tex');
    expect(await readdir(join(root, 'r'))).toHaveLength(2);
  });
});

describe('the file of a recording', () => {
  it('begins with the run and ends with its end', async () => {
    const writer = await open();
    writer.write(sample(1));
    await writer.end(END, []);
    const names = (await lines()).map((line) => JSON.stringify(line));
    expect(names[0]).toContain('tracewright.run.start');
    expect(names.at(-1)).toContain('tracewright.run.end');
  });

  it('has one line for each signal of a second', async () => {
    const writer = await open();
    await writer.flush();
    for (const n of [1, 2, 3]) {
      writer.write(sample(n));
      writer.write(blocked('s'));
    }
    await writer.flush();
    expect((await lines()).map((line) => Object.keys(line)[0])).toEqual([
      'resourceLogs',
      'resourceMetrics',
      'resourceSpans',
    ]);
    await writer.close();
  });

  it('has no line with more than 512 points', async () => {
    const writer = await open();
    for (let n = 0; n < 1100; n++) writer.write(sample(n));
    await writer.close();
    expect(await lines()).toHaveLength(1 + 3);
  });

  it('holds everything after a second without being asked', async () => {
    vi.useFakeTimers({ toFake: ['setInterval', 'clearInterval'] });
    const writer = await open();
    writer.write(sample(1));
    vi.advanceTimersByTime(1000);
    vi.useRealTimers();
    // Nothing new is queued: this waits for what the timer began.
    await writer.flush();
    expect(await lines()).toHaveLength(2);
    await writer.close();
  });

  it('has each stack once, and again in a new segment when a span refers to it', async () => {
    const writer = await open({ segmentBytes: 4000 });
    const frames = [{ function: 'f', file: 'app.py', line: 1 }];
    for (let n = 0; n < 20; n++) {
      writer.write({ kind: 'stack', at: START.startedAt, id: 's', frames });
      writer.write(blocked('s'));
      await writer.flush();
    }
    await writer.end(END, []);
    const names = (await readdir(writer.directory)).filter((name) => name.startsWith('telemetry'));
    expect(names.length).toBeGreaterThan(3);
    for (const name of names) {
      const text = JSON.stringify((await openRecording(join(root, 'r', name))).stack('s'));
      expect(text).toBe(JSON.stringify(frames));
    }
    const last = names.find((name) => name.endsWith('.jsonl')) ?? '';
    expect(JSON.stringify(await lines(last)).split('"tracewright.run.start"').length - 1).toBe(2);
  });
});

describe('more than a recording can take', () => {
  it('is dropped beyond 5000 readings a second, counted, and recorded as a gap', async () => {
    const writer = await open();
    for (let n = 0; n < 5100; n++) writer.write(sample(n));
    expect(await writer.end(END, [])).toEqual({ dropped: 100 });
    const { gaps } = await openRecording(writer.directory);
    expect(gaps).toMatchObject([
      {
        collector: 'recording',
        reason: 'dropped',
        detail: '100 readings over the limit of 5000 a second',
      },
    ]);
  });

  it('is taken with --raw', async () => {
    const writer = await open({ raw: true });
    for (let n = 0; n < 5100; n++) writer.write(sample(n));
    expect(await writer.end(END, [])).toEqual({ dropped: 0 });
  });

  it('is what comes after its end', async () => {
    const writer = await open();
    await writer.end(END, []);
    writer.write(sample(1));
    expect(await writer.close()).toEqual({ dropped: 1 });
  });
});

it('a disk that cannot be written any more is reported once, and what is there stays', async () => {
  const failures: Error[] = [];
  const writer = await open({ segmentBytes: 3000, onFailure: (error) => failures.push(error) });
  writer.write(sample(1));
  await writer.flush();
  // The next segment cannot be made: its name is taken by a folder.
  await mkdir(join(root, 'r', 'telemetry.0001.jsonl'));
  for (let n = 2; n < 12; n++) {
    writer.write(sample(n));
    await writer.flush();
  }
  const { dropped } = await writer.end(END, []);
  expect(failures).toHaveLength(1);
  expect(failures[0]?.message).toContain(writer.directory);
  await rm(join(root, 'r', 'telemetry.0001.jsonl'), { recursive: true });
  const recording = await openRecording(writer.directory);
  const kept = recording.series(METRIC.fds.name)[0]?.value.length ?? 0;
  expect(kept).toBeGreaterThan(0);
  expect(kept + dropped).toBe(11);
  expect(recording.end).toBeNull();
  await chmod(join(root, 'r'), 0o700);
});
