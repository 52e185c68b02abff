import { mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, expect, it } from 'vitest';
import { main } from '../../../src/cli.ts';
import { type FakeEnvironment, fakeEnvironment } from '../fake-environment.ts';

/**
 * A session is committed and given to others: what is pasted, typed and printed gets into it
 * without credentials.
 */

let cwd: string;
beforeEach(() => {
  cwd = mkdtempSync(join(tmpdir(), 'trace-credentials-'));
});
afterEach(() => rmSync(cwd, { recursive: true, force: true }));

async function run(argv: readonly string[], stdin = ''): Promise<FakeEnvironment> {
  const environment = fakeEnvironment({ cwd, stdin });
  expect(await main(['session', ...argv], environment), environment.err()).toBe(0);
  return environment;
}

/** Every file with its name. */
function everything(): string {
  return readdirSync(cwd, { recursive: true, withFileTypes: true })
    .filter((entry) => entry.isFile())
    .map(({ parentPath, name }) => `${name}\n${readFileSync(join(parentPath, name), 'utf8')}`)
    .join('\n');
}

const REPORT = `# it hangs with token=S3cretValue9

Started with \`vllm serve m-7b --api-key S3cretValue9 --port 8000\`.

Expected: an answer
Actual: none, and the log says

    Authorization: Bearer S3cretValue9
    connecting to postgres://bob:S3cret/Value9@db.example:5432/app
`;

it.each([
  ['a session', []],
  ['a worklog', ['--worklog']],
])('of a report, in %s and in its name', async (_, flags) => {
  const { err, out } = await run(['start', '-', '--no-environment', ...flags], REPORT);
  const all = everything();
  expect(all + err() + out()).not.toMatch(/s3cret|value9/i);
  for (const kept of ['m-7b', '--port 8000', 'Authorization: Bearer', 'db.example:5432/app'])
    expect(all).toContain(kept);
});

it('of notes, evidence and symptoms that are typed', async () => {
  await run(['start', 'it hangs', '--title', 'token=S3cretValue9', '--no-environment']);
  await run(['note', 'curl -u bob:S3cretValue9 http://h.example works']);
  await run(['evidence', 'add', '--checked', 'PGPASSWORD=S3cretValue9', '--found', '3 retries']);
  await run(['symptoms', '--actual', 'password: S3cretValue9 is refused']);
  const all = everything();
  expect(all).not.toMatch(/s3cret|value9/i);
  for (const kept of ['curl -u bob:', 'http://h.example works', 'PGPASSWORD=', 'is refused'])
    expect(all).toContain(kept);
});

it('of what a reproduction prints; its command is kept, and that is said', async () => {
  await run(['start', 'it hangs', '--no-environment']);
  const script = join(cwd, 'show.sh');
  writeFileSync(script, 'echo "db_password=S3cretValue9 for db.example"\nexit 1\n');
  const plain = await run(['reproduce', '--', 'sh', script]);
  expect(plain.err()).not.toContain('credential');
  rmSync(script);
  writeFileSync(join(cwd, 'other.sh'), 'exit 1\n');
  const all = everything();
  expect(all).not.toMatch(/S3cret/);
  expect(all).toContain('for db.example');
  const told = await run(['reproduce', '--', 'sh', 'other.sh', '--token', 'S3cretValue9']);
  expect(told.err()).toContain('looks like a credential');
  expect(told.err()).not.toContain('S3cret');
  const lines = everything()
    .split('\n')
    .filter((line) => line.includes('S3cret'));
  expect(lines.map((line) => line.trim().split(':')[0])).toEqual(['command']);
});
