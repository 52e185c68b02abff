import { chmod, lchown, mkdir, mkdtemp, rm, symlink } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, expect, it } from 'vitest';
import { callerOwner, defaultRecordingDirectory } from '../../src/recording/directory.ts';
import {
  parseRecordingAddress,
  parseSegmentName,
  segmentName,
} from '../../src/recording/format.ts';

let cwd: string;
beforeEach(async () => {
  cwd = await mkdtemp(join(tmpdir(), 'tracewright-'));
});
afterEach(() => rm(cwd, { recursive: true, force: true }));

const directoryOf = (target: string, env: Record<string, string> = {}, from = cwd) =>
  defaultRecordingDirectory({ verb: 'attach', target, now: 1_700_000_000.9, cwd: from, env });

it('a default recording is named by time, verb and target', () => {
  expect(directoryOf('4711')).toBe(join(cwd, '.tracewright', '20231114T221320Z-attach-4711'));
});

it('the target in its name cannot lead out of the folder', () => {
  const path = directoryOf(`../../etc/pass wd\u001b${'x'.repeat(500)}`);
  expect(
    path.startsWith(join(cwd, '.tracewright', '20231114T221320Z-attach-..-..-etc-pass-wd')),
  ).toBe(true);
  expect(path.length).toBeLessThan(cwd.length + 100);
});

it('an existing one is never meant: a number is added', async () => {
  const path = directoryOf('1');
  await mkdir(path, { recursive: true });
  expect(directoryOf('1')).toBe(`${path}-2`);
  await mkdir(`${path}-2`);
  expect(directoryOf('1')).toBe(`${path}-3`);
});

it.runIf(process.getuid?.() !== 0)(
  'it is in the state folder where cwd cannot be written',
  async () => {
    await chmod(cwd, 0o500);
    expect(directoryOf('1', { XDG_STATE_HOME: '/state' })).toMatch(/^\/state\/tracewright\/2023/);
  },
);

it.runIf(process.getuid?.() === 0).each(['folder', 'link'] as const)(
  'it is in the state folder where .tracewright is a %s of a stranger',
  async (kind) => {
    const path = join(cwd, '.tracewright');
    await (kind === 'folder' ? mkdir(path) : symlink(tmpdir(), path));
    await lchown(path, 12345, 23456);
    const env = { XDG_STATE_HOME: '/state' };
    expect(directoryOf('1', env)).toMatch(/^\/state\/tracewright\/2023/);
    const sudo = { ...env, SUDO_UID: '12345', SUDO_GID: '23456' };
    expect(directoryOf('1', sudo).startsWith(path)).toBe(true);
  },
);

it('it is in the state folder where cwd is gone', () => {
  const gone = join(cwd, 'gone');
  expect(directoryOf('1', { XDG_STATE_HOME: '/state' }, gone)).toMatch(
    /^\/state\/tracewright\/2023/,
  );
  expect(directoryOf('1', { XDG_STATE_HOME: 'rel', HOME: '/home/x' }, gone)).toMatch(
    /^\/home\/x\/\.local\/state\/tracewright\/2023/,
  );
});

it.runIf(process.getuid?.() === 0)(
  'under sudo it belongs to the caller, and to nobody else',
  () => {
    expect(callerOwner({ SUDO_UID: '1000', SUDO_GID: '100' })).toEqual({ uid: 1000, gid: 100 });
    for (const env of [{}, { SUDO_UID: '1000' }, { SUDO_UID: 'x', SUDO_GID: '1' }])
      expect(callerOwner(env)).toBeNull();
    expect(callerOwner({ SUDO_UID: '0', SUDO_GID: '0' })).toBeNull();
  },
);

it.each([
  ['rec', { path: 'rec', kind: 'recording', id: null }],
  ['rec#F1', { path: 'rec', kind: 'finding', id: 'F1' }],
  ['a#b/rec#H12', { path: 'a#b/rec', kind: 'hypothesis', id: 'H12' }],
  ['rec#F', { path: 'rec#F', kind: 'recording', id: null }],
  ['#F1', { path: '#F1', kind: 'recording', id: null }],
] as const)('the address %s is read', (text, address) => {
  expect(parseRecordingAddress(text)).toEqual(address);
});

it('segment names go both ways', () => {
  for (const index of [0, 1, 12, 9999, 10_000])
    expect(parseSegmentName(segmentName(index))).toEqual({ index, gzipped: false });
  expect(parseSegmentName('telemetry.0003.jsonl.gz')).toEqual({ index: 3, gzipped: true });
  for (const name of ['telemetry.jsonl.gz.partial', 'telemetry.3.jsonl', 'x.jsonl'])
    expect(parseSegmentName(name)).toBeUndefined();
});
