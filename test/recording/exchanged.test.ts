import {
  chown,
  lchown,
  lstat,
  mkdir,
  mkdtemp,
  readdir,
  readFile,
  rename,
  rm,
  stat,
  symlink,
  unlink,
  writeFile,
} from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { gunzipSync } from 'node:zlib';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { encodeContext } from '../../src/core/otlp-encode.ts';
import { METRIC } from '../../src/core/semconv.ts';
import type { Observation } from '../../src/core/types.ts';
import { downsampleSegments } from '../../src/recording/downsample-segment.ts';
import { writeCompressed } from '../../src/recording/files.ts';
import { openRecording, readRecordingBack } from '../../src/recording/reader.ts';
import { deleteRecording, removeRecording } from '../../src/recording/remove.ts';
import {
  type RecordingSink,
  type RecordingWriterOptions,
  openRecordingWriter,
} from '../../src/recording/writer.ts';
import { END, START } from './observations.ts';

/*
 * Under sudo a recording lies where its caller may exchange any name for a link, at any moment.
 * Here the names are exchanged between two steps of the writer, which is what a race comes to.
 */

const isRoot = process.getuid?.() === 0;
const CALLER = { SUDO_UID: '12345', SUDO_GID: '23456' };
const SECRET = '{"secret":"of root"}\n';

let root: string;
let victim: string;
beforeEach(async () => {
  root = await mkdtemp(join(tmpdir(), 'tracewright-'));
  victim = join(root, 'victim');
  await mkdir(victim, { mode: 0o755 });
  await writeFile(join(victim, 'shadow'), SECRET, { mode: 0o600 });
});
afterEach(() => rm(root, { recursive: true, force: true }));

const open = (options: Partial<RecordingWriterOptions> = {}): Promise<RecordingSink> =>
  openRecordingWriter({
    directory: join(root, 'r'),
    start: START,
    env: {},
    ...options,
  });

const sample = (n: number): Observation => ({
  kind: 'sample',
  at: START.startedAt + n,
  metric: METRIC.fds.name,
  value: n,
});

/** A segment of this size is full after some seconds of one reading each. */
const SMALL = { segmentBytes: 3000 };

/** Seconds of one reading each. */
async function write(writer: RecordingSink, seconds: number): Promise<void> {
  for (let n = 0; n < seconds; n++) {
    writer.write(sample(n));
    await writer.flush();
  }
}

/** Of every file in a folder, decompressed. */
async function textsIn(folder: string): Promise<string> {
  const texts = await Promise.all(
    (await readdir(folder)).map(async (name) => {
      const path = join(folder, name);
      if (!(await lstat(path)).isFile()) return '';
      const content = await readFile(path);
      return (name.endsWith('.gz') ? gunzipSync(content) : content).toString('utf8');
    }),
  );
  return texts.join('');
}

describe('a link in the place of a file of a recording', () => {
  it('is not followed when the file is compressed: what was written is', async () => {
    const writer = await open(SMALL);
    await write(writer, 1);
    const first = join(writer.directory, 'telemetry.jsonl');
    await unlink(first);
    await symlink(join(victim, 'shadow'), first);
    await write(writer, 12);
    await writer.end(END, []);
    const text = await textsIn(writer.directory);
    expect(text).not.toContain('of root');
    const compressed = gunzipSync(await readFile(`${first}.gz`)).toString('utf8');
    expect(compressed).toContain('tracewright.run.start');
    expect(await readFile(join(victim, 'shadow'), 'utf8')).toBe(SECRET);
  });

  it('is not written to, where the next file or its compressed form would be', async () => {
    const writer = await open(SMALL);
    const target = join(victim, 'shadow');
    await symlink(target, join(writer.directory, 'telemetry.jsonl.gz.partial'));
    await symlink(target, join(writer.directory, 'telemetry.0002.jsonl'));
    await write(writer, 20);
    await writer.end(END, []);
    expect(await readFile(target, 'utf8')).toBe(SECRET);
  });

  it('is not thinned out', async () => {
    const path = join(root, 'telemetry.jsonl.gz');
    const written = await writeCompressed(path, null, [Buffer.from('{}\n')]);
    const other = join(victim, 'other.gz');
    await writeCompressed(other, null, [Buffer.from(SECRET)]);
    const options = { windows: 8, through: 0, owner: null, context: encodeContext(START) };
    // Kept, so that no other file gets its number.
    await rename(path, join(root, 'kept'));
    for (const put of [
      () => symlink(other, path),
      () => writeCompressed(path, null, [Buffer.from(SECRET)]),
    ]) {
      await put();
      await expect(
        downsampleSegments([path], { ...options, written: [written] }),
      ).rejects.toThrow();
      await unlink(path);
    }
    expect(await readdir(root)).not.toContain('telemetry.jsonl.gz.partial');
  });
});

describe('a link in the place of the folder of a recording', () => {
  it('takes nothing in: what comes later goes where the folder went', async () => {
    const writer = await open(SMALL);
    await write(writer, 1);
    await rename(writer.directory, join(root, 'moved'));
    await symlink(victim, writer.directory);
    await write(writer, 12);
    await writer.end(END, []);
    expect(await readdir(victim)).toEqual(['shadow']);
    expect((await openRecording(join(root, 'moved'))).end).not.toBeNull();
  });

  it('is not read back', async () => {
    const other = await open({ directory: join(root, 'other') });
    await other.end(END, []);
    const writer = await open();
    await writer.end(END, []);
    const { directory, made } = writer;
    expect((await readRecordingBack(directory, made)).end).not.toBeNull();
    await rename(directory, join(root, 'moved'));
    await symlink(other.directory, directory);
    await expect(readRecordingBack(directory, made)).rejects.toThrow('another folder');
  });

  it('is not emptied or deleted', async () => {
    const writer = await open({ directory: join(root, 'other') });
    await writer.end(END, []);
    await symlink(writer.directory, join(root, 'r'));
    for (const remove of [removeRecording, deleteRecording])
      await expect(remove(join(root, 'r'))).rejects.toMatchObject({ exitCode: 2 });
    expect((await openRecording(writer.directory)).end).not.toBeNull();
  });

  it('is not recorded into', async () => {
    await mkdir(join(victim, 'empty'));
    await symlink(join(victim, 'empty'), join(root, 'r'));
    await expect(open()).rejects.toMatchObject({ code: 'ERR_RECORDING_EXISTS', exitCode: 2 });
    expect(await readdir(join(victim, 'empty'))).toEqual([]);
  });
});

describe.runIf(isRoot)('under sudo', () => {
  const ownerOf = async (path: string): Promise<number> => (await lstat(path)).uid;

  it('a folder is not given away where the caller could not have made it', async () => {
    await symlink(victim, join(root, 'a'));
    for (const directory of [join(root, 'a', 'x.d'), join(victim, 'b', 'y.d')]) {
      const writer = await open({ directory, env: CALLER });
      await writer.end(END, []);
      for (const path of [directory, join(directory, 'telemetry.jsonl')])
        expect({ path, uid: await ownerOf(path) }).toEqual({ path, uid: 0 });
    }
    expect(await ownerOf(join(victim, 'b'))).toBe(0);
  });

  it('no link is followed on the way that the caller could have put there', async () => {
    const home = join(root, 'home');
    await mkdir(home);
    await symlink(victim, join(home, 'theirs'));
    await lchown(join(home, 'theirs'), 12345, 12345);
    // One of root's, which they could have moved there.
    await symlink(victim, join(home, 'moved'));
    await chown(home, 12345, 23456);
    const kept = await open({ directory: join(victim, 'kept') });
    await kept.end(END, []);
    for (const link of ['theirs', 'moved']) {
      await expect(open({ directory: join(home, link, 'x'), env: CALLER })).rejects.toMatchObject({
        code: 'ERR_RECORDING_NOT_WRITABLE',
        message: expect.stringContaining('is not followed') as string,
      });
      for (const remove of [removeRecording, deleteRecording])
        await expect(
          remove(join(home, link, 'kept'), { uid: 12345, gid: 23456 }),
        ).rejects.toMatchObject({ code: 'ERR_RECORDING_EXISTS' });
    }
    expect((await readdir(victim)).toSorted()).toEqual(['kept', 'shadow']);
    expect(await readdir(kept.directory)).toContain('telemetry.jsonl');
  });

  it("a link of root's is, where only root could put it", async () => {
    await symlink('victim', join(root, 'a'));
    await symlink(join(root, 'a'), join(root, 'b'));
    const writer = await open({ directory: join(root, 'b', 'x'), env: CALLER });
    await writer.end(END, []);
    expect(await readdir(join(victim, 'x'))).toContain('telemetry.jsonl');
  });

  it('an empty folder that was there keeps its owner, and so do files in it', async () => {
    const directory = join(victim, 'empty');
    await mkdir(directory);
    await (await open({ directory, env: CALLER })).end(END, []);
    expect(await ownerOf(directory)).toBe(0);
    expect(await ownerOf(join(directory, 'telemetry.jsonl'))).toBe(0);
  });

  it('the usual folder goes to the caller wherever it is made', async () => {
    const directory = join(root, '.tracewright', '20231114T221320Z-attach-1');
    const writer = await open({ ...SMALL, directory, env: CALLER });
    await write(writer, 12);
    await writer.end(END, []);
    const names = await readdir(directory);
    expect(names).toContain('telemetry.jsonl.gz');
    const files = names.map((name) => join(directory, name));
    for (const path of [join(root, '.tracewright'), directory, ...files])
      expect(await stat(path)).toMatchObject({ uid: 12345, gid: 23456 });
    expect(await ownerOf(root)).toBe(0);
  });

  it("what is read back is the caller's, not what lies in its place by then", async () => {
    const home = join(root, 'home');
    await mkdir(home);
    await chown(home, 12345, 23456);
    const writer = await open({ directory: join(home, 'r'), env: CALLER });
    await writer.end(END, []);
    const { directory, made } = writer;
    expect((await readRecordingBack(directory, made)).end).not.toBeNull();
    const file = join(directory, 'telemetry.jsonl');
    for (const put of [
      () => symlink(join(victim, 'shadow'), file),
      () => rename(join(victim, 'shadow'), file),
    ]) {
      await unlink(file);
      await put();
      await expect(readRecordingBack(directory, made)).rejects.toThrow();
    }
  });
});
