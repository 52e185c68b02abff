import {
  closeSync,
  lchownSync,
  mkdtempSync,
  openSync,
  readFileSync,
  rmSync,
  statSync,
  symlinkSync,
  writeFileSync,
  writeSync,
} from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { openReportFile } from '../../src/commands/run/report-file.ts';
import { openOutputSync } from '../../src/platform/output-file.ts';

let root: string;
let path: string;
let victim: string;
beforeEach(() => {
  root = mkdtempSync(join(tmpdir(), 'tracewright-output-'));
  path = join(root, 'out');
  victim = join(root, 'victim');
  writeFileSync(victim, 'precious');
});
afterEach(() => rmSync(root, { recursive: true, force: true }));

function write(text: string, mode?: number): void {
  const file = openOutputSync(path, mode);
  writeSync(file, text);
  closeSync(file);
}

describe('a file that is to be written', () => {
  it('is new, with the mode that is asked for, or emptied', () => {
    write('a long text', 0o600);
    expect(statSync(path).mode & 0o777).toBe(0o600);
    write('short');
    expect(readFileSync(path, 'utf8')).toBe('short');
  });

  it('may be named by a link of our own, or of the system', () => {
    symlinkSync(victim, path);
    write('through it');
    expect(readFileSync(victim, 'utf8')).toBe('through it');
    const passed = openSync(victim, 'w');
    closeSync(openOutputSync(`/dev/fd/${passed}`));
    closeSync(passed);
  });

  it.runIf(process.getuid?.() === 0)("is not reached by root through a stranger's link", () => {
    symlinkSync(victim, path);
    lchownSync(path, 12_345, 12_345);
    const code = 'it is a symbolic link that belongs to uid 12345';
    expect(() => openOutputSync(path)).toThrow(expect.objectContaining({ code }));
    const report = { overwrite: true, onFailure: () => {} };
    expect(() => openReportFile(path, report)).toThrow(`cannot write ${path}: ${code}`);
    expect(readFileSync(victim, 'utf8')).toBe('precious');
  });
});
