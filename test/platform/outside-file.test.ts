import { execFileSync } from 'node:child_process';
import { closeSync, mkdirSync, mkdtempSync, rmSync, symlinkSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import {
  openOutside,
  openOutsideSync,
  readBeginSync,
  readOutside,
  readOutsideSync,
} from '../../src/platform/outside-file.ts';

let root: string;
let path: string;
beforeEach(() => {
  root = mkdtempSync(join(tmpdir(), 'tracewright-outside-'));
  path = join(root, 'file');
});
afterEach(() => rmSync(root, { recursive: true, force: true }));

/** What somebody may put where a file is expected, and what is said of it. */
const KINDS: readonly (readonly [what: string, code: string, put: () => void])[] = [
  ['a FIFO', 'it is not a regular file', () => execFileSync('mkfifo', [path])],
  ['a folder', 'it is a folder', () => mkdirSync(path)],
  ['a device without end', 'it is not a regular file', () => symlinkSync('/dev/zero', path)],
  ['a terminal', 'it is not a regular file', () => symlinkSync('/dev/ptmx', path)],
  ['a loop of links', 'ELOOP', () => symlinkSync('file', path)],
  ['a link to nothing', 'ENOENT', () => symlinkSync('nothing', path)],
  ['nothing', 'ENOENT', () => {}],
  ['a file that is too large', 'it is larger than 8 B', () => writeFileSync(path, '123456789')],
];

describe('a file from outside', () => {
  it('is read whole up to its limit, or its beginning', async () => {
    writeFileSync(path, 'größer');
    expect(readOutsideSync(path, 8).toString()).toBe('größer');
    expect(await readOutside(path, 8)).toBe('größer');
    expect(readBeginSync(path, 2).toString()).toBe('gr');
    expect(readBeginSync(path, 100).toString()).toBe('größer');
    symlinkSync(path, `${path}.link`);
    expect(await readOutside(`${path}.link`, 8)).toBe('größer');
  });

  it.each(KINDS)('that is %s is not read, nor waited for', async (_, code, put) => {
    put();
    expect(() => readOutsideSync(path, 8)).toThrow(expect.objectContaining({ code }));
    await expect(readOutside(path, 8)).rejects.toMatchObject({ code });
    if (code.startsWith('it is larger')) return;
    expect(() => openOutsideSync(path)).toThrow(expect.objectContaining({ code }));
    await expect(openOutside(path)).rejects.toMatchObject({ code });
  });

  it('is not reached through a link where links are not followed', () => {
    writeFileSync(path, '');
    symlinkSync(path, `${path}.link`);
    const code = 'it is a symbolic link';
    expect(() => openOutsideSync(`${path}.link`, { follow: false })).toThrow(
      expect.objectContaining({ code }),
    );
    closeSync(openOutsideSync(path, { follow: false }));
  });

  it('is judged by its owner and mode before it is opened', () => {
    writeFileSync(path, 'x', { mode: 0o604 });
    const judge = (found: { readonly mode: number }): string | null =>
      (found.mode & 0o004) === 0 ? null : 'others may read it';
    expect(() => readOutsideSync(path, 8, { judge })).toThrow(`${path}: others may read it`);
  });
});
