import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { describe, expect, it, onTestFinished } from 'vitest';
import { descendantsOf, rolesOf } from '../../src/platform/process-tree.ts';
import { end, start, startShell, until } from './processes.ts';

/** A shell with two children, one of which has one itself; `cat` ends when its input does, with the test. */
const FAMILY = `exec 3<&0; sh -c 'cat <&3 & echo up; wait' & cat <&3 & wait`;

describe('the descendants of a process', () => {
  it('are its children and theirs, nearest first, with how far below they are', async () => {
    const { pid } = await startShell(FAMILY);
    await until(() => descendantsOf(pid).length === 3);
    const found = descendantsOf(pid);
    expect(found.map(({ depth }) => depth)).toEqual([1, 1, 2]);
    const [, , grandchild] = found;
    expect(found.map(({ stat }) => stat.pid)).toContain(grandchild?.stat.parent);
    expect(found.every(({ stat }) => stat.pid !== process.pid)).toBe(true);
  });

  it('are none for a process without children, and for one that is gone', async () => {
    const started = await startShell('echo up; exec cat');
    expect(descendantsOf(started.pid)).toEqual([]);
    await end(started);
    expect(descendantsOf(started.pid)).toEqual([]);
  });

  it('are found by all threads: children belong to the thread that made them', async () => {
    const { pid } = await startShell(
      `exec python3 -c "
import subprocess, threading, time
threads = [threading.Thread(target=lambda: subprocess.run('cat')) for _ in range(3)]
for thread in threads: thread.start()
print('up', flush=True)
time.sleep(30)"`,
    );
    await until(() => descendantsOf(pid).length === 3);
  });

  it('are found where the threads are too many to ask each', async () => {
    const { pid } = await startShell(
      `exec python3 -c "
import subprocess, threading, time
for _ in range(80): threading.Thread(target=time.sleep, args=(30,), daemon=True).start()
child = subprocess.Popen('cat')
print('up', flush=True)
time.sleep(30)"`,
    );
    expect(descendantsOf(pid)).toHaveLength(1);
  });

  it('have roles by their place: a fork with the command line of its parent is a worker', async () => {
    const folder = mkdtempSync(join(tmpdir(), 'tracewright-tree-'));
    onTestFinished(() => rmSync(folder, { recursive: true, force: true }));
    const program = join(folder, 'server.cjs');
    writeFileSync(
      program,
      `const cluster = require('node:cluster');
      if (cluster.isPrimary) cluster.fork().on('message', () => console.log('up'));
      else process.send('up');
      setTimeout(process.exit, 30_000);`,
    );
    const { pid } = await start('node', [program]);
    const members = descendantsOf(pid);
    expect(members).toHaveLength(1);
    const roles = rolesOf(pid, members);
    expect(roles.get(pid)?.name).toBe('primary');
    expect(roles.get(members[0]?.stat.pid ?? 0)?.name).toBe('worker');
  });
});
