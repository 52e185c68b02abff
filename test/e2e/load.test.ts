import { existsSync, mkdtempSync, readdirSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, it } from 'vitest';
import { type Ended, runCli, startCli } from './cli.ts';
import { type LoadServer, startLoadServer } from './load-server.ts';

/*
 * The built program against a server in this process. A busy machine may make it say that it was itself the limit, which is exit code 6 and
 * outranks 1 and 3; a test asks for the code that the result itself accounts for.
 */

const folder = mkdtempSync(join(tmpdir(), 'tracewright-load-'));
let server: LoadServer;

beforeAll(async () => {
  server = await startLoadServer();
});
beforeEach(() => {
  Object.assign(server, { answer: 'stream', models: ['tiny'] });
  server.asked.length = 0;
  server.headers.length = 0;
});
afterAll(async () => {
  await server.close();
  rmSync(folder, { recursive: true, force: true });
});

interface LoadDocument {
  readonly interrupted: boolean;
  readonly recording: string | null;
  readonly trace_id: string;
  readonly load: {
    readonly model: string;
    readonly requests: {
      readonly sent: number;
      readonly ok: number;
      readonly failed: number;
      readonly errors: Record<string, number>;
    };
    readonly latency: Record<string, { readonly count: number; readonly p50_s: number }>;
    readonly client: { readonly limited: boolean };
    readonly stages: readonly { readonly label: string }[];
  };
}

function load(...args: string[]): Promise<Ended> {
  return runCli(['load', server.url, ...args], { cwd: folder });
}

function document({ stdout }: Ended): LoadDocument {
  return JSON.parse(stdout) as LoadDocument;
}

/** The code of a run, or 6 where it says that the client was the limit. */
function orLimited(code: number, { load: { client } }: LoadDocument): number {
  return client.limited ? 6 : code;
}

const SHORT = ['-n', '20', '-c', '4', '--isl', '16', '--osl', '4', '--no-recording'] as const;

describe('a run', () => {
  it('sends what was asked for and says what came of it', async () => {
    const ended = await load(
      ...SHORT,
      '--json',
      '--seed',
      '7',
      '-H',
      'X-Test: yes',
      '--api-key',
      'sk-secret',
    );
    const result = document(ended);
    expect(ended.code).toBe(orLimited(0, result));
    expect(result.load).toMatchObject({ model: 'tiny', requests: { sent: 20, ok: 20, failed: 0 } });
    expect(result.load.latency['ttft']?.p50_s).toBeGreaterThan(0.004);
    // One more to warm up, which is in no latency.
    expect(result.load.latency['ttft']?.count).toBe(20);
    expect(server.asked).toHaveLength(21);
    expect(server.asked[0]).toMatchObject({
      model: 'tiny',
      stream: true,
      stream_options: { include_usage: true },
      max_tokens: 4,
    });
    expect(new Set(server.asked.map((body) => JSON.stringify(body['messages']))).size).toBe(21);
    expect(server.headers[0]).toMatchObject({
      'x-test': 'yes',
      authorization: 'Bearer sk-secret',
      traceparent: expect.stringContaining(result.trace_id) as string,
    });
    expect(ended.stdout + ended.stderr).not.toContain('sk-secret');
  });

  it('keeps a recording, whose report can be shown again, and a line for each request', async () => {
    const ended = await load(
      '-n',
      '5',
      '--osl',
      '3',
      '--request-log',
      'log.jsonl',
      '--save',
      'result.json',
      '--api-key',
      'sk-secret',
    );
    expect([0, 6]).toContain(ended.code);
    const [name] = readdirSync(join(folder, '.tracewright'));
    const recording = join('.tracewright', name ?? '');
    const shown = await runCli(['show', recording, '--json'], { cwd: folder });
    expect(document(shown).load.requests).toMatchObject({ sent: 5, ok: 5 });
    expect(
      readFileSync(join(folder, 'log.jsonl'), 'utf8').trim().split('\n').length,
    ).toBeGreaterThanOrEqual(5);
    for (const file of ['log.jsonl', 'result.json', join(recording, 'telemetry.jsonl')]) {
      expect(readFileSync(join(folder, file), 'utf8')).not.toContain('sk-secret');
    }
    // Either is a result to be compared with.
    for (const baseline of [recording, 'result.json']) {
      const again = await load(...SHORT, '--baseline', baseline);
      expect(again.stdout).toContain(`Against ${baseline}`);
    }
  });

  it('takes one stage for each level of a sweep', async () => {
    const result = document(
      await load('--sweep', '1..4', '-n', '6', '--osl', '2', '--no-recording', '--json'),
    );
    expect(result.load.stages.map(({ label }) => label)).toEqual(['c=1', 'c=2', 'c=4']);
    expect(result.load.requests.ok).toBe(18);
  });

  it('carries conversations on', async () => {
    await load(
      '-n',
      '6',
      '-c',
      '1',
      '--turns',
      '3',
      '--osl',
      '2',
      '--isl',
      '8',
      '--warmup',
      '0',
      '--no-recording',
    );
    const lengths = server.asked.map(({ messages }) =>
      Array.isArray(messages) ? messages.length : 0,
    );
    expect(lengths).toEqual([1, 3, 5, 1, 3, 5]);
    const [, second] = server.asked;
    expect(second?.['messages']).toMatchObject([{}, { content: 'word word ' }, {}]);
  });

  it('goes over a unix socket', async () => {
    const socket = join(folder, 'server.sock');
    const behind = await startLoadServer(socket);
    const ended = await runCli(['load', '--unix', socket, ...SHORT, '--json'], { cwd: folder });
    await behind.close();
    expect(document(ended).load).toMatchObject({ model: 'tiny', requests: { ok: 20 } });
    expect(behind.headers[0]).toMatchObject({ host: 'localhost' });
  });

  it('is one of another tool, by its command line', async () => {
    const ended = await runCli(
      [
        'load',
        '--base-url',
        server.url,
        '--backend',
        'openai-chat',
        '--endpoint',
        '/v1/chat/completions',
      ]
        .concat([
          '--model',
          'tiny',
          '--dataset-name',
          'random',
          '--random-input-len',
          '8',
          '--no-recording',
        ])
        .concat([
          '--random-output-len',
          '3',
          '--num-prompts',
          '5',
          '--request-rate',
          'inf',
          '--json',
        ]),
      { cwd: folder },
    );
    expect(document(ended).load.requests.ok).toBe(5);
  });
});

describe('the model', () => {
  it('must be named when the server has several', async () => {
    server.models = ['a', 'b\u001b[2J'];
    const { code, stdout, stderr } = await load(...SHORT);
    expect({ code, stdout }).toEqual({ code: 2, stdout: '' });
    expect(stderr).toContain('Name one with -m: a, b\\x1b[2J');
    expect(server.asked).toEqual([]);
  });

  it('that is not served ends the run at once with 3', async () => {
    server.answer = '404';
    const ended = await load('-m', 'nope', '-d', '30s', '--no-recording', '--json');
    expect(ended.code).toBe(orLimited(3, document(ended)));
    expect(ended.stderr).toContain('giving up');
    expect(ended.stderr).toContain('no model nope');
    expect(server.asked.length).toBeLessThan(2000);
  });
});

describe('exit codes', () => {
  it('3: nobody is there', async () => {
    const { code, stdout } = await runCli(['load', 'http://127.0.0.1:9', '-m', 'x'], {
      cwd: folder,
    });
    expect({ code, stdout }).toEqual({ code: 3, stdout: '' });
  });

  it.each(['500', 'cut'] as const)('1: requests failed by %s', async (answer) => {
    server.answer = answer;
    const ended = await load(...SHORT, '--json');
    const result = document(ended);
    expect(ended.code).toBe(orLimited(1, result));
    expect(result.load.requests.errors).toEqual({ [answer === 'cut' ? 'cut' : 'http.5xx']: 20 });
    expect(result.load.latency['ttft']?.count).toBe(0);
  });

  it('1: a gate holds', async () => {
    const ended = await load(...SHORT, '--json', '--fail-on', 'requests>5');
    expect(ended.code).toBe(orLimited(1, document(ended)));
  });

  it('2: a mistake on the command line, of which nothing is sent', async () => {
    for (const args of [
      ['--concurency', '4'],
      ['-c', '4', '-r', '3'],
      ['--fail-on', 'speed>3'],
      ['--slo', 'x'],
    ]) {
      const { code, stdout } = await load(...args);
      expect({ args, code, stdout }).toEqual({ args, code: 2, stdout: '' });
    }
    expect(server.asked).toEqual([]);
  });
});

describe('Ctrl-C', () => {
  afterEach(() => {
    server.answer = 'stream';
  });

  it('drains, writes everything, and marks it interrupted', async () => {
    const out = join(folder, 'interrupted');
    const run = startCli(
      ['load', server.url, '-c', '3', '-d', '60s', '--osl', '20', '-o', out, '--json'],
      { cwd: folder },
    );
    await until(() => server.asked.length > 20);
    run.child.kill('SIGINT');
    const ended = await run.ended;
    const result = document(ended);
    expect(ended.code).toBe(130);
    expect(result.interrupted).toBe(true);
    expect(ended.stderr).toContain('stopping: waiting for the requests under way');
    // What was under way was waited for.
    const { sent, ok } = result.load.requests;
    expect(ok).toBe(sent);
    expect(existsSync(join(out, 'telemetry.jsonl'))).toBe(true);
    const shown = document(await runCli(['show', out, '--json'], { cwd: folder }));
    expect(shown.load.requests).toEqual(result.load.requests);
  });

  it('a second time ends at once: what was under way is unfinished', async () => {
    server.answer = 'slow';
    const run = startCli(
      ['load', server.url, '-c', '2', '-d', '60s', '--osl', '100', '--no-recording', '--json'],
      { cwd: folder },
    );
    await until(() => server.asked.length >= 2);
    run.child.kill('SIGTERM');
    await run.said('stopping');
    run.child.kill('SIGINT');
    const ended = await run.ended;
    expect(ended.code).toBe(143);
    expect(document(ended).load.requests.ok).toBe(0);
  });
});

describe('trace load merge', () => {
  it('joins the recordings of three processes, one of which was killed, and says so', async () => {
    const parts = [1, 2, 3].map((part) => {
      const out = join(folder, `part-${part}`);
      const flags = ['--run-id', 'together', '--part', `${part}/3`, '-o', out, '-q'];
      // The last one would go on for ever.
      const length = part === 3 ? ['-d', '10m'] : ['-n', '40'];
      const run = startCli(
        ['load', server.url, '-c', '2', ...length, '--isl', '8', '--osl', '4', ...flags],
        { cwd: folder },
      );
      return { out, run };
    });
    const [first, second, lost] = parts;
    if (first === undefined || second === undefined || lost === undefined) throw new Error('three');
    await Promise.all([first.run.ended, second.run.ended]);
    // A recording is written once a second.
    await new Promise((resolve) => {
      setTimeout(resolve, 2500);
    });
    lost.run.child.kill('SIGKILL');
    await lost.run.ended;
    const ended = await runCli(['load', 'merge', ...parts.map(({ out }) => out), '--json'], {
      cwd: folder,
    });
    expect(ended.code).toBe(6);
    expect(ended.stderr).toContain('the result is partial: part 3');
    const { load: merged } = document(ended);
    expect(merged.requests.ok).toBeGreaterThan(100);
    expect(merged.latency['ttft']?.count).toBe(merged.requests.ok);
    // No two machines sent the same.
    const prompts = server.asked.map(({ messages }) => JSON.stringify(messages));
    expect(new Set(prompts).size).toBe(prompts.length);
    const without = await runCli(['load', 'merge', first.out, second.out, '--json'], {
      cwd: folder,
    });
    expect(without.code).toBe(6);
    expect(without.stderr).toContain('part 3 of 3 is not there');
    expect(document(without).load.requests.ok).toBe(80);
  });
});

async function until(holds: () => boolean): Promise<void> {
  while (!holds()) {
    await new Promise((resolve) => {
      setTimeout(resolve, 20);
    });
  }
}
