import { describe, expect, it } from 'vitest';
import { main } from '../../../src/cli.ts';
import { isNear } from '../../../src/commands/load/safety.ts';
import { fakeEnvironment } from '../fake-environment.ts';

async function load(...args: string[]) {
  const environment = fakeEnvironment({ env: { OPENAI_API_KEY: 'sk-secret' } });
  const code = await main(['load', ...args], environment);
  return { code, out: environment.out(), err: environment.err() };
}

describe('an address is near', () => {
  it.each([
    ['127.0.0.1', true],
    ['127.8.8.8', true],
    ['0.0.0.0', true],
    ['10.1.2.3', true],
    ['172.16.0.1', true],
    ['172.31.255.255', true],
    ['172.32.0.1', false],
    ['192.168.9.9', true],
    ['169.254.1.1', true],
    ['100.64.0.1', true],
    ['100.128.0.1', false],
    ['8.8.8.8', false],
    ['::1', true],
    ['fe80::1%eth0', true],
    ['fd00::1', true],
    ['2001:4860:4860::8888', false],
    ['::ffff:10.0.0.1', true],
    ['::ffff:8.8.8.8', false],
  ])('%s: %s', (address, expected) => {
    expect(isNear(address)).toBe(expected);
  });
});

describe('what nobody confirmed is not sent', () => {
  it('to a public address', async () => {
    const { code, out, err } = await load('http://192.0.2.1', '-m', 'x', '-r', '100', '-d', '1m');
    expect({ code, out }).toEqual({ code: 2, out: '' });
    // What it would have been: where to, how many, how much.
    expect(err).toContain(
      'POST http://192.0.2.1/v1/chat/completions, with the key in OPENAI_API_KEY',
    );
    expect(err).toContain('6,000 requests and 1 to warm up');
    expect(err).toContain('about 3,072,512 tokens in, at most 768,128 out');
    expect(err).toContain('not sent without --yes: 192.0.2.1 is a public address');
    expect(err).not.toContain('sk-secret');
  });

  it('in more than a thousand streams', async () => {
    for (const flags of [
      ['-c', '1001'],
      ['--sweep', '1..2048'],
      ['-r', 'inf', '-n', '5000'],
      ['-r', '10', '--max-concurrency', '1001'],
      ['-r', '1001'],
    ]) {
      const { code, err } = await load('127.0.0.1:9', '-m', 'x', ...flags);
      expect({ flags, code }).toEqual({ flags, code: 2 });
      expect(err).toContain('not sent without --yes');
    }
  });
});

describe('--dry-run', () => {
  it('prints what would be sent, and sends nothing', async () => {
    const { code, out, err } = await load(
      '127.0.0.1:9',
      '--sweep',
      '1..4',
      '-d',
      '5s',
      '--prefix-tokens',
      '100',
      '--dry-run',
    );
    expect({ code, err }).toEqual({ code: 0, err: '' });
    expect(out).toBe(
      [
        'to        POST http://127.0.0.1:9/v1/chat/completions, with the key in OPENAI_API_KEY',
        'model     the only one that the server lists',
        'load      c=1 for 5s, c=2 for 5s, c=4 for 5s',
        'prompts   about 512 tokens in after 100 shared (of 1), 128 out',
        'in all    as many requests as are answered in 15 s, up to 4 streams at once',
        '',
      ].join('\n'),
    );
  });

  it('prints one JSON document with --json, without a secret', async () => {
    const url = 'http://u:p4ss@192.0.2.1/v1?key=s3cret';
    const { code, out } = await load(url, '-m', 'x', '-r', '2', '--dry-run', '--json');
    expect(code).toBe(0);
    expect(JSON.parse(out)).toMatchObject({
      url: 'http://192.0.2.1/v1/chat/completions?key',
      model: 'x',
      stages: [{ label: '2 req/s', kind: 'open', duration_s: 30 }],
      requests: 60,
      needs_yes: ['192.0.2.1 is a public address'],
    });
    expect(out).not.toMatch(/p4ss|s3cret/);
  });

  it('says what it would need', async () => {
    const { code, out } = await load('http://192.0.2.1', '-m', 'x', '-n', '10', '--dry-run');
    expect(code).toBe(0);
    expect(out).toContain('needs --yes: 192.0.2.1 is a public address');
  });
});

describe('before a run', () => {
  it('a server that is not there is not found', async () => {
    const { code, err } = await load('127.0.0.1:9', '-m', 'x');
    expect(code).toBe(3);
    expect(err).toContain('127.0.0.1:9 accepts no connection: ECONNREFUSED');
  });

  it('files and bodies are read', async () => {
    for (const [flags, code, message] of [
      [['--extra-body', '{'], 2, '--extra-body is not JSON'],
      [['--extra-body', '[1]'], 2, '--extra-body takes a JSON object'],
      [['--extra-body', '@/nonexistent.json'], 2, 'cannot read /nonexistent.json: ENOENT'],
      [['--dataset', '/nonexistent.jsonl'], 3, 'cannot read /nonexistent.jsonl: ENOENT'],
    ] as const) {
      const ended = await load('127.0.0.1:9', '-m', 'x', ...flags);
      expect(ended.code).toBe(code);
      expect(ended.err).toContain(message);
    }
  });
});
