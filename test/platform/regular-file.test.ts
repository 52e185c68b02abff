import { execFileSync } from 'node:child_process';
import {
  closeSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  rmSync,
  symlinkSync,
  writeFileSync,
} from 'node:fs';
import { createServer } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, describe, expect, it, onTestFinished } from 'vitest';
import { elfHeader, elfSymbols } from '../../src/platform/elf.ts';
import { readMaps } from '../../src/platform/memory.ts';
import { KeptFile } from '../../src/platform/proc-kept-file.ts';
import { readProc } from '../../src/platform/proc.ts';
import { openRegular, readRegular } from '../../src/platform/regular-file.ts';
import { ProgramFile } from '../../src/platform/runtime-binary.ts';
import { judgeProgram } from '../../src/platform/runtime-program.ts';
import { makeProgram } from './program-fixture.ts';

const folder = mkdtempSync(join(tmpdir(), 'tracewright-regular-'));
afterAll(() => rmSync(folder, { recursive: true, force: true }));
let made = 0;
const fresh = (): string => join(folder, `made-${made++}`);

function fileWith(bytes: string | Buffer): string {
  const path = fresh();
  writeFileSync(path, bytes);
  return path;
}

/** One of each kind of thing that may have the name of a file. */
async function others(): Promise<readonly string[]> {
  const [pipe, linkToPipe, linkToEndless, linkToTerminal, directory, socket] = [
    fresh(),
    fresh(),
    fresh(),
    fresh(),
    fresh(),
    fresh(),
  ];
  execFileSync('mkfifo', [pipe]);
  symlinkSync(pipe, linkToPipe);
  symlinkSync('/dev/zero', linkToEndless);
  symlinkSync('/dev/tty', linkToTerminal);
  mkdirSync(directory);
  const server = createServer().listen(socket);
  await new Promise((resolve) => server.once('listening', resolve));
  onTestFinished(() => void server.close());
  return [pipe, linkToPipe, linkToEndless, linkToTerminal, directory, socket];
}

describe('a file that stands where somebody else decides', () => {
  it('is opened and read when it is a regular one, also behind a link', () => {
    const path = fileWith('abc');
    const link = fresh();
    symlinkSync(path, link);
    const { fd, stats } = openRegular(link);
    closeSync(fd);
    expect(stats.size).toBe(3);
    expect(readRegular(link, 3).toString()).toBe('abc');
    expect(readRegular(fileWith(''), 0).toString()).toBe('');
    const long = 'x'.repeat(200_000);
    expect(readRegular(fileWith(long), 200_000).toString()).toBe(long);
  });

  it('is neither waited for nor read when it is anything else', async () => {
    for (const path of await others()) {
      expect(() => openRegular(path)).toThrow(/is not a regular file/);
      expect(() => readRegular(path, 10)).toThrow(/is not a regular file/);
      expect(() => elfHeader(path)).toThrow(/is not a regular file/);
      expect(() => elfSymbols(path, ['main'])).toThrow(/is not a regular file/);
      expect(() => new ProgramFile(path)).toThrow(/is not a regular file/);
      expect(KeptFile.open(path)).toBeNull();
      expect(readProc(path)).toBeNull();
    }
  });

  it('is not read beyond its limit, also where it says nothing of its length', () => {
    expect(() => readRegular(fileWith('abcd'), 3)).toThrow(/is too long/);
    expect(() => readRegular('/proc/self/status', 100)).toThrow(/is too long/);
    expect(readRegular('/proc/self/status', 65_536).toString()).toMatch(/^Name:/);
    // Longer than what is read at a time.
    const maps = readRegular('/proc/self/maps', 2 ** 24).toString();
    expect(maps.split('\n').length).toBeGreaterThan(50);
    expect(maps).toMatch(/\[stack\]/);
  });

  it('leaves no descriptor behind', async () => {
    const path = fileWith('abc');
    const wrong = await others();
    const before = readdirSync('/proc/self/fd').length;
    for (let i = 0; i < 20; i++) {
      readRegular(path, 10);
      expect(() => readRegular(path, 1)).toThrow();
      for (const one of wrong) expect(() => openRegular(one)).toThrow();
      expect(() => openRegular(fresh())).toThrow(/ENOENT/);
    }
    expect(readdirSync('/proc/self/fd').length).toBe(before);
  });

  it('of the kernel is opened as it is', () => {
    expect(readProc('/proc/self/status')).toMatch(/^Name:/);
    expect(readProc('/proc/uptime')).toMatch(/^\d/);
    expect(readProc(`/proc/${process.pid}/task/${process.pid}/stat`)).toContain(`${process.pid} (`);
    expect(readProc(`/proc/${process.pid}/net/tcp`)).toContain('local_address');
  });
});

describe('a mapping', () => {
  it('names device and inode of its file as stat does', () => {
    const text = readFileSync('/proc/self/maps', 'utf8');
    const maps = readMaps(process.pid);
    expect(text).toContain(maps[0]?.path);
    for (const map of maps) {
      if (map.inode === 0) expect(map.device).toBe(0);
      else expect(map.device).toBeGreaterThan(0);
    }
  });
});

describe('a program file that was made to keep whoever reads it', () => {
  const READ_LIMIT = 64 * 2 ** 20;
  const bytesRead = (): number =>
    Number(/^rchar: (\d+)$/m.exec(readFileSync('/proc/self/io', 'utf8'))?.[1]);

  it('with a thousand tables of symbols is read by one of them', () => {
    const file = makeProgram({ symbols: { one: 0, two: 0 } });
    const headersAt = Number(file.readBigUInt64LE(40));
    const count = file.readUInt16LE(60);
    const headers = file.subarray(headersAt, headersAt + 64 * count);
    const table = headers.subarray(64 * 3, 64 * 4);
    expect(table.readUInt32LE(4)).toBe(11);
    // The table of each is the whole of 4 MiB, of which the file has one.
    const many = Buffer.concat(Array.from({ length: 1000 }, () => table));
    const whole = Buffer.concat([file, Buffer.alloc(4 * 2 ** 20), headers, many]);
    for (let i = 0; i < 1000; i++) {
      const at = whole.length - many.length + 64 * i;
      whole.writeBigUInt64LE(BigInt(file.length), at + 24);
      whole.writeBigUInt64LE(BigInt(4 * 2 ** 20), at + 32);
    }
    whole.writeBigUInt64LE(BigInt(file.length + 4 * 2 ** 20), 40);
    whole.writeUInt16LE(count + 1000, 60);
    const path = fileWith(whole);
    const before = bytesRead();
    expect(elfSymbols(path, ['one', 'missing'])?.symbols.has('one')).toBe(true);
    expect(bytesRead() - before).toBeLessThan(READ_LIMIT);
  });

  it('with a marker of a version in every place is given up', () => {
    const symbols = { _ZN4node5StartEiPPc: 0 };
    const marker = 'node.js/v';
    const path = fileWith(makeProgram({ symbols, rodata: marker.repeat(200_000) }));
    expect(judgeProgram(path)).toMatchObject({ runtime: 'node', version: null });
    const file = new ProgramFile(path);
    onTestFinished(() => file.close());
    expect([...file.search('.rodata', marker, /^node/)]).toHaveLength(10_000);
  });
});
