import { spawnSync } from 'node:child_process';
import { existsSync, mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { pythonEnvironment } from '../environments.ts';
import { MAIN, type ReportDocument, runCli, startCli, verdicts } from './cli.ts';

/* `trace run`: the command is left alone, its end is ours, and what blocks it is found from its first moment on. */

const HERE = import.meta.dirname;
const COUNTING = join(HERE, 'counting.py');
const SERVER = join(HERE, '..', 'targets', 'python', 'asyncio_server.py');
const NODE_SERVER = join(HERE, '..', 'targets', 'node', 'http-server.js');

const folder = mkdtempSync(join(tmpdir(), 'tracewright-run-'));
afterAll(() => rmSync(folder, { recursive: true, force: true }));
let python = '';
beforeAll(async () => ({ python } = await pythonEnvironment([])));
let files = 0;
const freshFile = (): string => join(folder, `file-${(files += 1)}`);

/** A run without a recording whose report goes to a file. */
function watching(command: readonly string[], ...flags: readonly string[]) {
  const path = freshFile();
  const args = ['run', '--no-recording', '--json', '--report', path, ...flags, '--', ...command];
  const report = (): ReportDocument & { readonly run: Readonly<Record<string, number | null>> } =>
    JSON.parse(readFileSync(path, 'utf8')) as ReturnType<typeof report>;
  return { args, report };
}

/** A server that blocks for 300 ms again and again, until it ends. */
const plan = (seconds = 6): string[] =>
  `--kinds sleep --durations 300 --reps 200 --start-s 1.4 --seconds ${seconds} --truth /dev/null`.split(
    ' ',
  );

const blockedIn = (report: ReportDocument): readonly (string | undefined)[] =>
  verdicts(report)
    .filter(({ kind }) => kind === 'loop-blocked')
    .map(({ where }) => where[0]?.function);

describe.concurrent('the exit code', () => {
  const unrunnable = freshFile();
  writeFileSync(unrunnable, '#!/bin/sh\n');
  it.each([
    ['the code of a command that ends by itself', ['sh', '-c', 'sleep 0.6; exit 5'], 5],
    ['128 and the signal that killed it', ['sh', '-c', 'kill -KILL $$'], 137],
    ['127 for a command that is not there', ['tracewright-no-such-command'], 127],
    ['126 for one that may not be executed', [unrunnable], 126],
  ])('is %s', async (_, command, code) => {
    expect(await runCli(['run', '-q', '--no-recording', '--', ...command])).toMatchObject({ code });
  });

  it('is 1 where --fail-on says so, and else what the command ended with', async () => {
    const target = [python, SERVER, ...plan()];
    const [found, other] = await Promise.all([
      runCli(watching(target, '--fail-on', 'loop-blocked').args),
      runCli(watching(target, '--fail-on', 'fd-leak,memory-leak').args),
    ]);
    expect([found.code, other.code]).toEqual([1, 0]);
  });
});

describe.concurrent('the command', () => {
  it('has its outputs to itself, in the mode in which they were', async () => {
    const script = 'head -c 300000 /dev/zero; sleep 0.6; grep flags /proc/self/fdinfo/[12] >&2';
    const { args } = watching(['sh', '-c', script]);
    const { stdout, stderr } = await runCli(args);
    expect(stdout).toBe('\0'.repeat(300_000));
    // O_NONBLOCK on a pipe that we share would make its writes fail.
    const flags = [...stderr.matchAll(/flags:\s*([0-7]+)/g)].map(([, text = '']) => text);
    expect(flags.map((text) => Number.parseInt(text, 8) & 0o4000)).toEqual([0, 0]);
    expect(stderr.replaceAll(/^\/proc.*\n/gm, '')).toBe('');
  });

  it('has its input and the further descriptors that trace was given', () => {
    const script = `printf in | "$0" "$1" run -q --no-recording -- sh -c 'cat; cat "$0"' <(printf further)`;
    const { stdout } = spawnSync('bash', ['-c', script, process.execPath, MAIN]);
    expect(String(stdout)).toBe('infurther');
  });

  it('gets each signal once that trace gets, and trace ends with it', async () => {
    const { args, report } = watching([python, COUNTING]);
    const run = startCli(args);
    await run.said('no tty');
    for (const signal of ['SIGHUP', 'SIGUSR1', 'SIGUSR2', 'SIGQUIT', 'SIGINT'] as const) {
      run.child.kill(signal);
      await run.said(`${signal} 1`);
    }
    const { code, stdout } = await run.ended;
    expect(code).toBe(7);
    expect(stdout).not.toMatch(/ 2$/m);
    expect(report().run).toEqual({ ready_s: null, exit_code: 7, exit_signal: null });
  });

  it.each([
    ['Ctrl-C reaches it once', [['tty\r\n', '\u0003']], /tty\s+\^CSIGINT 1\s+ended 7\s*$/],
    [
      'Ctrl-Z stops both, and both go on',
      [
        ['tty\r\n', '\u001a'],
        ['SIGCONT 1\r\n', '\u0003'],
      ],
      /tty\s+\^Zstopped\s+SIGCONT 1\s+\^CSIGINT 1\s+ended 7\s*$/,
    ],
  ])('has the terminal: %s', (_, typed, shown) => {
    const trace = [process.execPath, MAIN, ...watching([python, COUNTING], '-q').args];
    const { stdout, stderr } = spawnSync(
      python,
      [join(HERE, 'job-control.py'), JSON.stringify(typed), ...trace],
      { timeout: 20_000 },
    );
    expect(String(stdout), String(stderr)).toMatch(shown);
  });

  it('may end before anything is seen, and is reported all the same', async () => {
    const { args, report } = watching(['sh', '-c', 'exit 6']);
    const { code, stderr } = await runCli(args);
    expect(code).toBe(6);
    expect(stderr).toContain('before anything was observed');
    expect(report()).toMatchObject({
      command: 'run',
      findings: [],
      targets: [{ pid: expect.any(Number) }],
      run: { exit_code: 6 },
    });
  });

  it('may leave something running, which is named', async () => {
    const script = 'sleep 60.25 >/dev/null 2>&1 & sleep 3; exit 4';
    const { code, stderr } = await runCli(watching(['sh', '-c', script]).args);
    const [said, left] =
      /exited with code 4 and left pid (\d+) running \(sleep 60\.25\)/.exec(stderr) ?? [];
    if (left !== undefined) process.kill(Number(left), 'SIGKILL');
    expect(said, stderr).toBeDefined();
    expect(code).toBe(4);
  });

  it('goes on after --duration, when the report is there already', async () => {
    const path = freshFile();
    // It ends when the report is there, and only then.
    const script =
      'until grep -q findings "$0" && sleep 0.2; do sleep 0.05; done; cat "$0"; exit 9';
    const flags = ['--no-recording', '--json', '--report', path, '-d', '1'];
    const run = await runCli(['run', ...flags, '--', 'sh', '-c', script, path]);
    expect(run.code).toBe(9);
    const { run: then } = JSON.parse(run.stdout) as { readonly run: unknown };
    expect(then).toEqual({ ready_s: null, exit_code: null, exit_signal: null });
  });
});

describe.concurrent('what blocks the loop is found', () => {
  it.each([
    ['of the command itself', (server: readonly string[]) => server],
    ['behind a shell that becomes it', (server: readonly string[]) => behind('exec "$@"', server)],
    [
      'behind a shell that waits for it',
      (server: readonly string[]) => behind('"$@"; true', server),
    ],
    [
      'behind a program that becomes it late',
      (server: readonly string[]) => behind('sleep 1; exec "$@"', server),
    ],
  ])('%s', async (_, wrapped) => {
    // A wrapper's child is looked for once a second, and joined when it has lived for one.
    const server = [python, SERVER, ...plan(8)];
    const { args, report } = watching(wrapped(server));
    const { code } = await runCli(args);
    expect(code).toBe(0);
    expect(blockedIn(report())).toEqual(['blocking_sleep']);
    expect(
      report().collectors.find(({ name, available }) => name === 'event-loop' && available),
    ).toBeDefined();
  });

  it('in Node', async () => {
    const { args, report } = watching([process.execPath, NODE_SERVER, ...plan(6)]);
    expect((await runCli(args)).code).toBe(0);
    expect(verdicts(report()).map(({ kind }) => kind)).toEqual(['loop-blocked']);
  });

  const behind = (script: string, server: readonly string[]): string[] => [
    'sh',
    '-c',
    script,
    'sh',
    ...server,
  ];
});

it('--trigger writes the stretch around what fires it, and ends as the command does', async () => {
  const path = freshFile();
  const flags = ['--trigger', 'delay>200ms', '--trigger-after', '1s', '-o', path];
  const command = [python, SERVER, ...plan()];
  const { code, stderr } = await runCli(['run', ...flags, '--', ...command]);
  expect(stderr).toContain(`${path}-trigger-1`);
  expect(code).toBe(0);
  const shown = await runCli(['show', `${path}-trigger-1`, '--json']);
  expect(blockedIn(JSON.parse(shown.stdout) as ReportDocument)).toEqual(['blocking_sleep']);
});

describe.concurrent('--ready-url', () => {
  const port = 20_000 + (process.pid % 10_000);
  const url = `http://127.0.0.1:${port}/health`;
  const script = `
    const http = require('node:http');
    const block = (ms) => { const end = Date.now() + ms; while (Date.now() < end); };
    let status = 503;
    http.createServer((_, answer) => answer.writeHead(status).end()).listen(${port}, '127.0.0.1');
    setInterval(() => status === 503 && block(400), 900);
    setTimeout(() => (status = 204), 5500);
    setTimeout(() => process.exit(0), 7500);`;

  it('measures the start, and tells what blocked meanwhile apart', async () => {
    const recording = freshFile();
    const path = freshFile();
    const flags = ['--ready-url', url, '-o', recording, '--json', '--report', path];
    const { code, stderr } = await runCli(['run', ...flags, '--', process.execPath, '-e', script]);
    expect(code).toBe(0);
    expect(stderr).toMatch(/ready [\d.]+ (?:ms|s) after its start/);
    const report = JSON.parse(readFileSync(path, 'utf8'));
    expect(report.run.ready_s).toBeGreaterThan(3);
    expect(verdicts(report)).toEqual([]);
    expect(report.findings).toContainEqual(
      expect.objectContaining({
        kind: 'loop-blocked',
        severity: 'note',
        summary: expect.stringMatching(/during its start-up$/),
      }),
    );
    const shown = await runCli(['show', recording, '--json']);
    expect(JSON.parse(shown.stdout)).toMatchObject({
      command: 'run',
      run: report.run,
      findings: report.findings,
    });
  });

  it('says when the server never was ready, and what it answered', async () => {
    const nobody = `http://user:secret@127.0.0.1:${port + 10_000}/`;
    const { args, report } = watching(['sleep', '0.8'], '--ready-url', nobody);
    await runCli(args);
    expect(report().problems).toEqual([
      `http://user:***@127.0.0.1:${port + 10_000}/ never answered with a 2xx status: ECONNREFUSED`,
    ]);
  });
});

describe.concurrent('nothing is started', () => {
  it('when its recording or report could not be written', async () => {
    const full = join(folder, 'full');
    mkdirSync(full);
    writeFileSync(join(full, 'kept'), 'x');
    const trap = freshFile();
    for (const flags of [
      ['-o', full],
      ['--report', join(full, 'kept')],
      ['--report', join(full, 'kept', 'below')],
      ['--fail-on', 'sometimes'],
    ]) {
      const run = await runCli(['run', ...flags, '--', 'touch', trap]);
      expect(run, flags.join(' ')).toMatchObject({ code: 2, stdout: '' });
    }
    expect(existsSync(trap)).toBe(false);
    expect(readFileSync(join(full, 'kept'), 'utf8')).toBe('x');
  });
});
