import { existsSync } from 'node:fs';
import { expect, it, onTestFinished } from 'vitest';
import { LimitedLook } from '../../src/platform/limited-look.ts';
import { until } from './processes.ts';

/** A process that looks, keeps silent of 666, and dies of 667. It names itself as what it saw. */
const LOOKER = `
process.stdout.write('ready\\n');
process.stdin.setEncoding('utf8').on('data', (line) => {
  const pid = Number(line);
  if (pid === 666) return;
  if (pid === 667) process.exit(1);
  const look = { runtime: { name: 'native' }, commandLine: [String(process.pid), '\\u2028' + pid] };
  console.log(Buffer.from(JSON.stringify(look)).toString('base64'));
});`;

function look(script: string): LimitedLook {
  const made = new LimitedLook(3, [process.execPath, '-e', script]);
  onTestFinished(() => made.close());
  return made;
}

it('a process that keeps whoever looks is left, and the next are looked into', async () => {
  const limited = look(LOOKER);
  const [first = '', said] = (await limited.at(1))?.commandLine ?? [];
  expect(said).toBe('\u20281');
  expect((await limited.at(2))?.commandLine).toEqual([first, '\u20282']);
  expect(await limited.at(666)).toBeNull();
  // It is not waited for, and another goes on.
  await until(() => !existsSync(`/proc/${first}`));
  const [second = '', next] = (await limited.at(3))?.commandLine ?? [];
  expect(next).toBe('\u20283');
  expect(second).not.toBe(first);
  expect(await limited.at(667)).toBeNull();
  expect((await limited.at(4))?.commandLine[1]).toBe('\u20284');
});

it('is looked here where no process can be started for it', async () => {
  for (const command of [[process.execPath, '-e', ''], ['/nowhere/at/all']]) {
    const limited = new LimitedLook(3, command);
    expect(await limited.at(process.pid)).toMatchObject({
      runtime: { name: 'node', version: process.versions.node },
      commandLine: expect.arrayContaining([]) as string[],
    });
    limited.close();
  }
});
