import { spawnSync } from 'node:child_process';
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, expect, it } from 'vitest';
import { elfHeader } from '../../src/platform/elf.ts';
import { mappedFile } from '../../src/platform/mapped-file.ts';
import { readMaps } from '../../src/platform/memory.ts';
import { interpreters } from '../environments.ts';
import { start } from '../platform/processes.ts';
import { runCli } from './cli.ts';

/* Processes of anybody that lie to whoever looks at them: trace goes on, and ends. */

const TARGETS = join(import.meta.dirname, '../targets/python');
const folder = mkdtempSync(join(tmpdir(), 'tracewright-hostile-'));
afterAll(() => rmSync(folder, { recursive: true, force: true }));
const PYTHON = interpreters().at(-1)?.path ?? 'python3';

/**
 * A user and a mount namespace of one's own: what everybody may have on most machines, and few
 * containers allow.
 */
const NAMESPACES = ['unshare', '-Urm', '--propagation', 'private'] as const;
const canUnshare =
  spawnSync(NAMESPACES[0], [...NAMESPACES.slice(1), 'mount', '-t', 'tmpfs', 'none', folder])
    .status === 0;

it.runIf(canUnshare)(
  'a pipe in the place of a mapped library, with its inode number, holds nobody up',
  async () => {
    const [program, ...flags] = NAMESPACES;
    const script = join(TARGETS, 'replaced_library.py');
    const { pid, said } = await start(program, [...flags, PYTHON, script, folder]);
    expect(said).toMatch(/^up \d+$/);
    const map = readMaps(pid).find(({ path }) => path.startsWith(`${folder}/`));
    expect(String(map?.inode)).toBe(said.slice(3));
    if (map === undefined) return;
    // Its own file by the kernel's link, where we have the right to follow that.
    const file = mappedFile(pid, map);
    if (file.includes('/map_files/')) expect(elfHeader(file)).not.toBeNull();
    else expect(() => elfHeader(file)).toThrow(/is not a regular file/);
    const limits = { limitS: 30, cwd: folder } as const;
    const listed = await runCli(['attach'], limits);
    expect(listed.signal).toBeNull();
    expect(listed.code).toBe(0);
    expect(listed.stdout).toMatch(new RegExp(`\\b${pid}\\b`));
    const attached = await runCli(['attach', String(pid), '-d', '1', '--no-recording'], limits);
    expect(attached.signal).toBeNull();
  },
);
