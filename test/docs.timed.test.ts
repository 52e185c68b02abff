import { spawnSync } from 'node:child_process';
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, describe, expect, it } from 'vitest';
import { examples, pages, words } from './docs.ts';

const ROOT = join(import.meta.dirname, '..');
const MAIN = join(ROOT, 'dist', 'src', 'main.js');
const folder = mkdtempSync(join(tmpdir(), 'trace-docs-'));
afterAll(() => rmSync(folder, { recursive: true }));

/** A pid that was somebody's a moment ago and is nobody's now. */
function deadPid(): string {
  return String(spawnSync(process.execPath, ['-e', '0']).pid);
}

/** What an example of a verb must end with here, where neither its process nor its recording exists. */
function expectedCode(name: string | undefined, args: readonly string[]): number {
  if (name === 'show') return 3;
  if (name === 'attach') return args.length === 0 ? 0 : 3;
  if (name === 'doctor' || name === 'cleanup') return args.some((arg) => /^\d+$/.test(arg)) ? 3 : 0;
  return 0;
}

describe('the examples of the documents', () => {
  const lines = new Set(
    pages(ROOT)
      .flatMap(examples)
      .map(({ line }) => line),
  );
  it.each([...lines])('run: %s', (line) => {
    const [, name, ...args] = words(line);
    const pid = deadPid();
    const given = args.map((word) =>
      /^\d{4,}$/.test(word) ? pid : word.replace('uvicorn app:main', `no such program ${pid}`),
    );
    const { status, stdout, stderr } = spawnSync(process.execPath, [MAIN, name ?? '', ...given], {
      cwd: folder,
      encoding: 'utf8',
      timeout: 30_000,
    });
    expect(status, stderr).toBe(expectedCode(name, args));
    if (status === 0) expect(stdout).not.toBe('');
    else expect(stderr).toMatch(/^trace: \S.*\n {7}\S/);
  });
});
