import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { describe, expect, it, onTestFinished } from 'vitest';
import { readStat } from '../../src/platform/proc.ts';
import {
  describeService,
  findSuccessor,
  type Service,
  unitIn,
} from '../../src/platform/service.ts';
import { end, start, type Started, startShell } from './processes.ts';

/* One service by what tells it from others; each test has command lines of its own, since others run beside it. */

let unique = 0;
const freshMark = (): string => `service-${process.pid}-${(unique += 1)}`;

/** Node that listens on a port and goes by a mark. */
const serve = (port: number, mark: string): Promise<Started> =>
  start(process.execPath, [
    '-e',
    `require('node:net').createServer().listen(${port}, '127.0.0.1', function () { console.log(this.address().port) })`,
    mark,
  ]);

const startOf = ({ pid }: { pid: number }): number => readStat(pid)?.startTicks ?? 0;

/** What is seen of a process, which then ends. */
async function ended(started: Started, known: Pick<Service, 'pattern'> = { pattern: null }) {
  const service = describeService(started.pid, known);
  const since = startOf(started);
  await end(started);
  return { service, since };
}

describe('the successor of a service', () => {
  it('has its command line, its program and its directory', async () => {
    const mark = freshMark();
    const { service, since } = await ended(await serve(0, mark));
    expect(findSuccessor(service, since)).toEqual({ kind: 'none' });
    await serve(0, freshMark());
    expect(findSuccessor(service, since)).toEqual({ kind: 'none' });
    const again = await serve(0, mark);
    expect(findSuccessor(service, since)).toMatchObject({ kind: 'one', stat: { pid: again.pid } });
    // One that ran before it ended is its sibling.
    expect(findSuccessor(service, startOf(again) + 1)).toEqual({ kind: 'none' });
  });

  it('is not the same command started elsewhere', async () => {
    const mark = freshMark();
    const here = await startShell(`echo ready; read line # ${mark}`);
    const { service, since } = await ended(here);
    const folder = mkdtempSync(join(tmpdir(), 'tracewright-elsewhere-'));
    onTestFinished(() => rmSync(folder, { recursive: true, force: true }));
    const text = `echo ready; read line # ${mark}`;
    await start('env', ['-C', folder, '/bin/sh', '-c', text]);
    expect(findSuccessor(service, since)).toEqual({ kind: 'none' });
    const { pid } = await startShell(text);
    expect(findSuccessor(service, since)).toMatchObject({ kind: 'one', stat: { pid } });
  });

  it('may have another command line where it listens on the same port', async () => {
    const first = await serve(0, freshMark());
    const { service, since } = await ended(first);
    expect([...service.ports]).toEqual([Number(first.said)]);
    const next = await serve(Number(first.said), freshMark());
    expect(findSuccessor(service, since)).toMatchObject({ kind: 'one', stat: { pid: next.pid } });
  });

  it('is what --match names, where that named it', async () => {
    const mark = freshMark();
    const { service, since } = await ended(await startShell(`echo ready; read line # ${mark}`), {
      pattern: mark,
    });
    const { pid } = await serve(0, `another ${mark}`);
    expect(findSuccessor(service, since)).toMatchObject({ kind: 'one', stat: { pid } });
  });

  it('is none of several that could each be it, but the parent of the others', async () => {
    const text = `echo ready; read line # ${freshMark()}`;
    const { service, since } = await ended(await startShell(text));
    const [one, other] = [await startShell(text), await startShell(text)];
    const unknown = { ...service, parent: 0 };
    expect(findSuccessor(unknown, since)).toEqual({
      kind: 'several',
      pids: [one.pid, other.pid].toSorted((a, b) => a - b),
    });
    await end(other);
    expect(findSuccessor(unknown, since)).toMatchObject({ kind: 'one', stat: { pid: one.pid } });
  });
});

describe('a unit of systemd', () => {
  it.each([
    ['0::/system.slice/app.service\n', '/system.slice/app.service'],
    ['0::/system.slice/app.service/workers\n', '/system.slice/app.service'],
    [
      '0::/user.slice/user-1000.slice/user@1000.service/app.slice/app.service\n',
      '/user.slice/user-1000.slice/user@1000.service/app.slice/app.service',
    ],
    ['4:cpu:/\n1:name=systemd:/system.slice/app.service\n0::/\n', '/system.slice/app.service'],
    ['0::/user.slice/user-1000.slice/user@1000.service/app.slice/terminal.scope\n', null],
    ['0::/user.slice/user-1000.slice/session-3.scope\n', null],
    ['0::/system.slice/docker-0123.scope\n', null],
    ['0::/\n', null],
    ['', null],
  ])('is read from %j', (text, unit) => {
    expect(unitIn(text)).toBe(unit);
  });
});
