import { spawnSync } from 'node:child_process';
import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { delimiter, join } from 'node:path';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { examples, pages, words } from './docs.ts';
import { runCli } from './e2e/cli.ts';
import { type LoadServer, startLoadServer } from './e2e/load-server.ts';

const ROOT = join(import.meta.dirname, '..');
const folder = mkdtempSync(join(tmpdir(), 'trace-docs-'));
let server: LoadServer;
/** What the examples of `trace run` start stands here in place of what a reader has. */
const programs = join(folder, 'bin');
const STARTED = ['python', 'vllm', 'npm'] as const;

/** What the examples of `trace load` find: a server, a data set, a result to compare with, and the parts of a run. */
beforeAll(async () => {
  server = await startLoadServer();
  mkdirSync(programs);
  writeProgram();
  writeAccount();
  for (const name of STARTED)
    writeFileSync(join(programs, name), '#!/bin/sh\necho "$0 $*"; sleep 1\n', { mode: 0o755 });
  const message = { role: 'user', content: 'Why is the sky blue?' };
  writeFileSync(join(folder, 'chat.jsonl'), `${JSON.stringify({ messages: [message] })}\n`);
  const result = (file: string, ...flags: string[]) =>
    runCli(['load', server.url, ...SHORT, '--no-recording', '--save', file, ...flags], {
      cwd: folder,
    });
  await Promise.all([
    result('last.json', '-c', '8'),
    ...['one', 'two'].map((name, i) =>
      result(`${name}.json`, '--run-id', 'night', '--part', `${i + 1}/2`),
    ),
  ]);
});
afterAll(async () => {
  await server.close();
  rmSync(folder, { recursive: true });
});

/** An example asks for minutes; what comes last counts. */
const SHORT = ['-n', '8', '-d', '1s', '--force'] as const;

/** A pid that was somebody's a moment ago and is nobody's now. */
function deadPid(): string {
  return String(spawnSync(process.execPath, ['-e', '0']).pid);
}

/** What an example of a verb may end with here, where neither its process nor its recording exists. */
function expectedCodes(name: string | undefined, args: readonly string[]): readonly number[] {
  const namesProcess = args.some((arg) => /^\d{4,}$/.test(arg));
  if (name === 'show' || name === 'heap' || name === 'profile' || name === 'hypotheses') return [3];
  // A folder is written; whatever runs one that somebody has finds none here. What follows `--` runs.
  if (name === 'repro' && args.some((word) => word.includes('-proxy-127.0.0.1'))) return [3];
  if (name === 'repro') return args.includes('--') ? [0, 1] : args[0] === 'new' ? [0] : [3];
  // Without the server that it starts, the recording that it names, and git, which its end needs.
  if (name === 'session' && (args[0] === 'backend' || args.includes('--from'))) return [3];
  if (name === 'session' && args[0] === 'resolve') return [1];
  if (name === 'attach') return args.length === 0 ? [0] : [3];
  if (name === 'tasks') return [3];
  if (name === 'doctor' || name === 'cleanup') return namesProcess ? [3] : [0];
  // So few requests may prove nothing, and a condition of an example may hold.
  if (name === 'load' && !args.includes('--dry-run')) {
    return args.includes('--attach') ? [3] : [0, 1, 6];
  }
  return [0];
}

/** The words of an example, with what there is here in place of what it names. */
function adapted(name: string | undefined, args: readonly string[]): readonly string[] {
  const pid = deadPid();
  const given = args.map((word) =>
    /^\d{4,}$/.test(word) &&
    !['--isl', '-r', '--schedules'].includes(args[args.indexOf(word) - 1] ?? '')
      ? pid
      : word.replace('uvicorn app:main', `no such program ${pid}`),
  );
  if (name === 'repro') return adaptedRepro(given);
  if (name === 'proxy') {
    const target = given.map((word) => word.replace(/^http:..127.0.0.1:8000/, server.url));
    return [...target, '--port', '0', '-d', '1s'];
  }
  if (name === 'run')
    return given.map((word) => word.replace(/^http:..127.0.0.1:8000/, server.url));
  if (name !== 'load' || args.includes('--dry-run')) return given;
  const here = given.map((word) =>
    word.replace(/^(?:http:\/\/)?(?:127\.0\.0\.1|10\.0\.0\.5):8000/, server.url),
  );
  return args[0] === 'merge' ? here : [...here, ...SHORT];
}

let written = 0;

/** Folders of their own, no environment that would have to be installed, an interpreter that is one, and few schedules. */
function adaptedRepro(args: readonly string[]): readonly string[] {
  const output = args.indexOf('-o') + 1;
  return args
    .map((word, i) => (output > 0 && i === output ? `${word}-${written++}` : word))
    .filter((word, i) => word !== '--package' && args[i - 1] !== '--package')
    .map((word) => (word === 'python' ? 'python3' : word === '1000' ? '3' : word));
}

/** What the examples of `trace repro` call. */
function writeProgram(): void {
  mkdirSync(join(folder, 'app'));
  writeFileSync(join(folder, 'app', '__init__.py'), 'async def use(mark):\n    return mark\n');
  const account =
    'value = 0\n\n\ndef deposit():\n    global value\n    value += 1\n\n\ndef total():\n    return value\n';
  writeFileSync(join(folder, 'app', 'account.py'), account);
  writeFileSync(join(folder, 'nonces.json'), '[["{nonce}"]]');
  for (const name of ['transfer.sql', 'refund.sql'])
    writeFileSync(join(folder, name), 'UPDATE accounts SET balance = 0 WHERE id = 1;\n');
  const transfer =
    'import asyncio\n\n\nasync def main():\n    await asyncio.sleep(0)\n    await asyncio.sleep(0)\n\n\nasyncio.run(main())\n';
  writeFileSync(join(folder, 'transfer.py'), transfer);
}

/** The service of the examples of `trace session`: ten withdrawals at once, of which nine get lost unless it is `mended`. */
function writeAccount(mended?: string): void {
  const body =
    mended ??
    'balance = self.balance\n        await asyncio.sleep(0)\n        self.balance = balance - amount';
  const account = `import asyncio\n\nclass Account:\n    balance = 100\n\n    async def withdraw(self, amount):\n        # Line 8 is the next one.\n        ${body}\n`;
  writeFileSync(join(folder, 'account.py'), account);
  const repro =
    'import asyncio, sys\nfrom account import Account\n\nasync def main():\n    account = Account()\n    await asyncio.gather(*(account.withdraw(1) for _ in range(10)))\n    sys.exit(0 if account.balance == 90 else 1)\n\nasyncio.run(main())\n';
  writeFileSync(join(folder, 'repro.py'), repro);
}

describe('the examples of the documents', () => {
  const lines = new Set(
    pages(ROOT)
      .flatMap(examples)
      .map(({ line }) => line),
  );
  it.each([...lines])('run: %s', async (line) => {
    const [, name, ...args] = words(line);
    const given = adapted(name, args);
    // What a reader does before that line.
    if (name === 'session' && args[0] === 'attempt') writeAccount('self.balance -= amount');
    const { code, stdout, stderr } = await runCli(
      [...(name === undefined ? [] : [name]), ...given],
      {
        cwd: folder,
        // Nobody's recordings are cleaned up but those of these tests.
        env: {
          XDG_STATE_HOME: join(folder, 'state'),
          PATH: `${programs}${delimiter}${process.env['PATH'] ?? ''}`,
        },
      },
    );
    expect(expectedCodes(name, args), stderr).toContain(code);
    if (code === 3 || stdout === '') expect(stderr).toMatch(/^trace: \S.*\n {7}\S/m);
    else expect(stdout).not.toBe('');
  });
});
