import {
  chmodSync,
  cpSync,
  existsSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  renameSync,
  rmSync,
  statSync,
  symlinkSync,
  writeFileSync,
} from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, expect, it } from 'vitest';
import { main } from '../../../src/cli.ts';
import { diagnosisHash } from '../../../src/session/gates.ts';
import { DIAGNOSIS_KEYS } from '../../../src/session/shape.ts';
import { fakeEnvironment } from '../fake-environment.ts';

/** What a session's file says of its approval is not enough for anything to be run. */

let root = '';
let cwd = '';
beforeEach(() => {
  root = mkdtempSync(join(tmpdir(), 'trace-approval-'));
  cwd = join(root, 'work');
  home = join(root, 'state');
  mkdirSync(join(cwd, '.planning', 'debug'), { recursive: true });
});
afterEach(() => rmSync(root, { recursive: true, force: true }));

const state = (): string => join(root, 'state', 'tracewright', 'approvals');
const file = (): string => join(cwd, '.planning', 'debug', 'x-hangs.md');
const ran = (name = 'ran'): boolean => existsSync(join(cwd, name));

let home = '';
async function session(...args: string[]): Promise<{ code: number; out: string; err: string }> {
  const env = { PATH: process.env['PATH'] ?? '', XDG_STATE_HOME: home };
  const environment = fakeEnvironment({ cwd, env });
  const code = await main(['session', ...args], environment);
  return { code, out: environment.out(), err: environment.err() };
}

/** Consistent in itself, and written by whoever made the checkout. */
function plant(command = '["sh", "-c", "touch ran; exit 1"]'): void {
  const diagnosis = Object.fromEntries(
    DIAGNOSIS_KEYS.map((key) => [key, key === 'files' ? '' : 'x']),
  );
  const at = '2026-11-26T00:41:08.873Z';
  const lines = Object.entries(diagnosis).map(([key, value]) => `${key}: ${value}`);
  writeFileSync(
    file(),
    `---
status: fixing
trigger: x hangs
goal: find_and_fix
created: ${at}
updated: ${at}
---

## Reproduction

command: ${command}
runs: 1
seen_failing: "${at}: 1 of 1 runs failed"

## Diagnosis

${lines.join('\n')}
hash: ${diagnosisHash(diagnosis)}
approved_by: maintainer
approved_at: ${at}
approved_commit: none
`,
  );
}

const approve = () => session('approve', '--approved-by', 'ana');
const attempt = () => session('attempt', 'a change');
const resolveFlags = ['--confirmed-by', 'a', '--suite', 'true', '--regression', 'true'];
const resolve = () => session('resolve', ...resolveFlags, '--no-git', 'none');

it('a file that says it was approved runs nothing, and what it would run is shown', async () => {
  plant();
  for (const verb of [attempt, resolve]) {
    const { code, err, out } = await verb();
    expect({ code, out }).toEqual({ code: 1, out: '' });
    expect(err).toContain("look at what would be run: sh -c 'touch ran; exit 1'");
    expect(err).toContain('trace session approve');
  }
  expect(ran()).toBe(false);
  // Asked again, it holds, with what it is compared with as it was.
  const approved = await approve();
  expect(approved).toMatchObject({ code: 0, err: '' });
  expect(approved.out).toContain("attempts run: sh -c 'touch ran; exit 1'");
  expect(readFileSync(file(), 'utf8')).toContain('approved_commit: none\n');
  expect(ran()).toBe(false);
  expect(await attempt()).toMatchObject({ code: 1, err: '' });
  expect(ran()).toBe(true);
});

it('an approval is of the command that was shown, and of the file where it lies', async () => {
  plant();
  await approve();
  const before = readFileSync(file(), 'utf8');
  const changes: readonly (readonly [string, string])[] = [
    ['touch ran;', 'touch other;'],
    ['runs: 1\n', 'runs: 100000\n'],
    ['approved_commit: none', 'approved_commit: 0123456789abcdef'],
    ['approved_by: ana', 'approved_by: bob'],
  ];
  for (const [from, to] of changes) {
    expect(before).toContain(from);
    writeFileSync(file(), before.replace(from, to));
    expect(await attempt()).toMatchObject({ code: 1, out: '' });
  }
  writeFileSync(file(), before);
  expect((await attempt()).out).toContain('1 of 1 runs failed');
  rmSync(join(cwd, 'ran'));
  cpSync(cwd, join(root, 'copy'), { recursive: true });
  cwd = join(root, 'copy');
  expect(await attempt()).toMatchObject({ code: 1, out: '' });
  expect([ran(), ran('other')]).toEqual([false, false]);
});

it('stays when the same user sees the fault by another command, and goes with a rejection', async () => {
  plant();
  await approve();
  const other = ['sh', '-c', 'touch second; exit 1'];
  expect(await session('reproduce', '--', ...other)).toMatchObject({ code: 0 });
  rmSync(join(cwd, 'second'));
  expect((await attempt()).out).toContain('1 of 1 runs failed');
  expect([ran(), ran('second')]).toEqual([false, true]);
  const approved = readFileSync(file(), 'utf8');
  await session('reject', '--because', 'it also happens alone');
  writeFileSync(file(), approved);
  rmSync(join(cwd, 'second'));
  expect(await attempt()).toMatchObject({ code: 1, out: '' });
  expect(ran('second')).toBe(false);
});

it('whoever has not approved is not made one who has by seeing the fault', async () => {
  plant();
  await session('reproduce', '--', 'sh', '-c', 'exit 1');
  expect(await attempt()).toMatchObject({ code: 1, out: '' });
});

it('is refused where it cannot be kept', async () => {
  plant();
  home = '/dev/null';
  const { code, err } = await approve();
  expect({ code, err }).toEqual({
    code: 2,
    err: expect.stringContaining('the approval cannot be kept in /dev/null/tracewright/approvals'),
  });
  expect(readFileSync(file(), 'utf8')).toContain('approved_by: maintainer');
  expect(await attempt()).toMatchObject({ code: 1, out: '' });
  expect(ran()).toBe(false);
});

it('is signed with a key that is this user’s alone', async () => {
  plant();
  await approve();
  const key = join(state(), 'key');
  expect(statSync(key).mode & 0o777).toBe(0o600);
  expect(statSync(state()).mode & 0o777).toBe(0o700);
  const [record = ''] = readdirSync(state()).filter((name) => name !== 'key');
  expect(readdirSync(state())).toHaveLength(2);
  writeFileSync(join(state(), record), 'f'.repeat(64));
  expect(await attempt()).toMatchObject({ code: 1, out: '' });
  await approve();
  chmodSync(key, 0o640);
  expect(await attempt()).toMatchObject({ code: 1, out: '' });
  const refused = await approve();
  expect(refused).toMatchObject({ code: 2, out: '' });
  expect(refused.err).toContain('the approval cannot be kept');
  chmodSync(key, 0o600);
  renameSync(key, join(root, 'elsewhere'));
  symlinkSync(join(root, 'elsewhere'), key);
  expect(await attempt()).toMatchObject({ code: 1, out: '' });
  expect(ran()).toBe(false);
});
