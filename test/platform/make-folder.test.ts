import { existsSync, mkdtempSync, rmSync, statSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { makeFolder } from '../../src/platform/make-folder.ts';

describe('a folder that is made', () => {
  let root = '';
  beforeEach(() => {
    root = mkdtempSync(join(tmpdir(), 'make-folder-'));
  });
  afterEach(() => rmSync(root, { recursive: true }));

  it('is made with those above it, with their mode, and the first of them is told', () => {
    expect(makeFolder(join(root, 'a', 'b', 'c'), 0o700)).toBe(join(root, 'a'));
    expect(statSync(join(root, 'a', 'b', 'c')).mode & 0o777).toBe(0o700);
    expect(makeFolder(join(root, 'a', 'b', 'd'))).toBe(join(root, 'a', 'b', 'd'));
    expect(makeFolder(join(root, 'a', 'b'))).toBeUndefined();
  });

  it('is refused where a file is in its way', () => {
    writeFileSync(join(root, 'file'), '');
    expect(() => makeFolder(join(root, 'file'))).toThrow('EEXIST');
    expect(() => makeFolder(join(root, 'file', 'x', 'y'))).toThrow(/ENOTDIR|EEXIST/);
    expect(existsSync(join(root, 'file', 'x'))).toBe(false);
  });

  it('is refused where a file system has none, and does not try for ever', () => {
    expect(() => makeFolder('/proc/1/x')).toThrow('ENOENT');
    expect(() => makeFolder('/proc/1/x/y/z')).toThrow('ENOENT');
  });
});
