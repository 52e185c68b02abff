import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { describe, expect, it } from 'vitest';
import { parseCommandLine } from '../../../src/commands/command-line/command-line.ts';
import { type LoadOptions, parseLoadOptions } from '../../../src/commands/load/options.ts';
import { PEER_FLAGS } from '../../../src/commands/load/peer-flags.ts';
import { loadUsage } from '../../../src/commands/load/usage.ts';
import { words } from '../../docs.ts';

const URL = 'http://127.0.0.1:8000';

function parse(line: string, env: Readonly<Record<string, string>> = {}): LoadOptions {
  const { values, positionals } = parseCommandLine(loadUsage, words(line));
  return parseLoadOptions(values, positionals, { env });
}

function load(flags: string): LoadOptions {
  return parse(`${URL} ${flags}`);
}

/** Label, kind and length of each stage, for short. */
function stages(flags: string): string[] {
  return load(flags).stages.map(
    ({ label, arrival, duration, requests, maxConcurrency, continuous }) =>
      [
        `${arrival.kind} ${label}`,
        ...(duration === null ? [] : [`${duration}s`]),
        ...(requests === null ? [] : [`${requests}n`]),
        ...(maxConcurrency === null ? [] : [`max ${maxConcurrency}`]),
        ...(continuous === true ? ['at once'] : []),
      ].join(', '),
  );
}

describe('the endpoint', () => {
  it.each([
    ['http://h:8000', '/v1/chat/completions', 'chat', '/v1/models'],
    ['h:8000', '/v1/chat/completions', 'chat', '/v1/models'],
    ['http://h/v1', '/v1/chat/completions', 'chat', '/v1/models'],
    ['http://h/v1/', '/v1/chat/completions', 'chat', '/v1/models'],
    ['http://h/openai/v1', '/openai/v1/chat/completions', 'chat', '/openai/v1/models'],
    ['http://h/v1/completions', '/v1/completions', 'completions', '/v1/models'],
    ['http://h/v1/responses', '/v1/responses', 'responses', '/v1/models'],
    ['http://h/v1/embeddings', '/v1/embeddings', 'embeddings', '/v1/models'],
    ['http://h/own/path', '/own/path', 'chat', null],
    ['http://h/v1 --api embeddings', '/v1/embeddings', 'embeddings', '/v1/models'],
    ['http://h/own/path --api completions', '/own/path', 'completions', null],
    ['h:8000 --endpoint /v1/completions', '/v1/completions', 'completions', '/v1/models'],
  ])('%s goes to %s', (line, path, api, modelsPath) => {
    expect(parse(line).endpoint).toMatchObject({ path, api, modelsPath });
  });

  it('has the port of its scheme', () => {
    expect(parse('https://h/v1').endpoint).toMatchObject({
      port: 443,
      secure: true,
      authority: 'h',
    });
    expect(parse('http://[::1]:81/v1').endpoint).toMatchObject({
      host: '::1',
      port: 81,
      authority: '[::1]:81',
    });
  });

  it('keeps its query, and shows none of its values', () => {
    const { path, shown } = parse('http://h/v1/chat/completions?api-version=7&key=secret').endpoint;
    expect(path).toBe('/v1/chat/completions?api-version=7&key=secret');
    expect(shown).toBe('http://h/v1/chat/completions?api-version&key');
  });

  it('takes a unix socket', () => {
    expect(parse('--unix /run/s.sock').endpoint).toMatchObject({
      unix: '/run/s.sock',
      path: '/v1/chat/completions',
      authority: 'localhost',
    });
  });

  it('sends a key and never shows it', () => {
    const key = 'sk-very-secret';
    for (const [options, from] of [
      [parse(`${URL} --api-key ${key}`), 'flag'],
      [parse(URL, { OPENAI_API_KEY: key }), 'environment'],
      [parse(`${URL} -H 'Authorization: Bearer ${key}'`, { OPENAI_API_KEY: 'other' }), 'header'],
    ] as const) {
      expect(options.endpoint.headers).toContainEqual(['Authorization', `Bearer ${key}`]);
      expect(options.endpoint.key).toBe(from);
      expect(options.endpoint.shown).not.toContain(key);
    }
    const { endpoint } = parse(`http://user:${key}@h/v1`);
    expect(endpoint.headers).toEqual([
      ['Authorization', `Basic ${Buffer.from(`user:${key}`).toString('base64')}`],
    ]);
    expect(endpoint.shown).toBe('http://h/v1/chat/completions');
  });

  it.each([
    ['', 'no URL given'],
    ['ftp://h', 'expected the URL of a server'],
    ['http://a http://b', 'one URL at a time'],
    ['http://a -u http://b', 'contradict'],
    ['http://h/v1/completions --api chat', 'contradict'],
    [`http://h -H 'Content-Length: 3'`, 'trace sets this header itself'],
    [`http://h -H nonsense`, 'takes'],
    ['http://h --insecure', 'is for https URLs'],
    ['http://h --api-key a -H Authorization=b', 'contradict'],
    ['http://h --api spoken', '--api takes chat or completions or responses or embeddings'],
  ])('is refused: trace load %s', (line, message) => {
    expect(() => parse(line)).toThrow(message);
  });

  it('cannot be given a header that is two', () => {
    const { values, positionals } = parseCommandLine(loadUsage, [URL, '-H', 'A: b\r\nC: d']);
    expect(() => parseLoadOptions(values, positionals, { env: {} })).toThrow('no header may hold');
    expect(() => parse(URL, { OPENAI_API_KEY: 'a\nb' })).toThrow('OPENAI_API_KEY');
  });

  it('does not repeat a password in its message', () => {
    expect(() => parse('ftp://user:secret@h')).toThrow(/^(?!.*secret)/);
  });
});

describe('stages', () => {
  it.each([
    ['', ['closed c=1, 30s']],
    ['-c 8', ['closed c=8, 30s']],
    ['-c 8 -n 100', ['closed c=8, 100n']],
    ['-c 8 -n 100 -d 2m', ['closed c=8, 120s, 100n']],
    ['-r 8', ['open 8 req/s, 30s']],
    ['-r 90/m', ['open 1.5 req/s, 30s']],
    ['-r 8 --max-concurrency 4', ['open 8 req/s, 30s, max 4']],
    ['--max-concurrency 4', ['closed c=4, 30s']],
    ['-r inf -n 20', ['closed c=20, 20n']],
    ['-r inf --max-concurrency 4 -d 5', ['closed c=4, 5s']],
    [
      '--sweep 1..8 -d 5s',
      ['closed c=1, 5s', 'closed c=2, 5s', 'closed c=4, 5s', 'closed c=8, 5s'],
    ],
    ['--sweep 3..10 -n 9', ['closed c=3, 9n', 'closed c=6, 9n', 'closed c=10, 9n']],
    ['--sweep 1,7 -d 1', ['closed c=1, 1s', 'closed c=7, 1s']],
    ['--sweep-rate 0.5..2 -d 1', ['open 0.5 req/s, 1s', 'open 1 req/s, 1s', 'open 2 req/s, 1s']],
    ['-r 1,2 -d 1', ['open 1 req/s, 1s', 'open 2 req/s, 1s']],
    ['-c 1,2 -d 1', ['closed c=1, 1s', 'closed c=2, 1s']],
    [
      "--stages '10/s:30s,10..50/s:1m,50/s:200'",
      ['open 10 req/s, 30s', 'open 10..50 req/s, 60s, at once', 'open 50 req/s, 200n, at once'],
    ],
    ["--stages '8:30s,c=16:200n'", ['closed c=8, 30s', 'closed c=16, 200n, at once']],
    ['-r 10 --ramp 5s -d 20', ['open ramp to 10 req/s, 5s', 'open 10 req/s, 20s, at once']],
    ['--replay t.jsonl', ['replay replay']],
    ['--replay t.jsonl --speed 2 -d 60', ['replay replay x2, 60s']],
  ])('%s', (flags, expected) => {
    expect(stages(flags)).toEqual(expected);
  });

  it('begin their streams one after the other', () => {
    const ramp = (flags: string) => {
      const arrival = load(flags).stages[0]?.arrival;
      return arrival?.kind === 'closed' ? arrival.rampUp : null;
    };
    expect(ramp('-c 4')).toBeCloseTo(0.04);
    expect(ramp('-c 500')).toBe(1);
    expect(ramp('-c 500 -d 2')).toBeCloseTo(0.2);
    expect(ramp('-c 500 --ramp 10s')).toBe(10);
    expect(ramp('-c 500 --ramp 0')).toBe(0);
  });

  it('have constant gaps unless told otherwise', () => {
    const burstiness = (flags: string) => {
      const arrival = load(flags).stages[0]?.arrival;
      return arrival?.kind === 'open' ? arrival.burstiness : 'closed';
    };
    expect(burstiness('-r 8')).toBeNull();
    expect(burstiness('-r 8 --burstiness 1')).toBe(1);
    expect(burstiness('-r 8 --burstiness 0.3')).toBe(0.3);
    expect(burstiness('-r 8 --burstiness inf')).toBeNull();
  });

  it.each([
    ['-c 4 -r 8', '-c and -r contradict'],
    ['-c 4 --sweep 1..4', 'contradict'],
    ['-c 0', '-c, --concurrency takes a number from 1'],
    ['-c four', '-c, --concurrency takes a whole number'],
    ['-r 0', '-r, --rate takes a number from'],
    ['-r inf', 'how much?'],
    ['--sweep 8..1', '--sweep goes up'],
    ['--sweep 1,x', '--sweep takes a whole number'],
    ['--stages 10/s', '--stages takes a level and a length each'],
    ['--stages 10/s:30', null],
    ["--stages '1..5/s:30'", 'a ramp needs a time'],
    ['--stages 1:1s -d 5', 'contradict'],
    ['--burstiness 1 -c 4', '--burstiness shapes the gaps of a rate'],
    ['--speed 2', '--speed needs --replay'],
    ['-d 0', '--duration takes between'],
    ['-n 0', '--requests takes a number from 1'],
  ])('%s is refused', (flags, message) => {
    if (message === null) expect(() => load(flags)).not.toThrow();
    else expect(() => load(flags)).toThrow(message);
  });
});

describe('prompts', () => {
  it('are made up unless there are data', () => {
    expect(load('').prompts).toMatchObject({
      turns: 1,
      classes: [{ prompts: { kind: 'synthetic', inputTokens: 512, outputTokens: 128 } }],
    });
    expect(
      load('--isl 64 --osl 8 --isl-stddev 3 --prefix-tokens 100 --prefixes 4').prompts.classes,
    ).toEqual([
      {
        name: '',
        weight: 1,
        prompts: {
          kind: 'synthetic',
          inputTokens: 64,
          inputDeviation: 3,
          outputTokens: 8,
          outputDeviation: 0,
          prefixTokens: 100,
          prefixes: 4,
        },
      },
    ]);
    expect(load('--dataset a.jsonl --dataset-order random').prompts.classes[0]?.prompts).toEqual({
      kind: 'file',
      path: 'a.jsonl',
      order: 'random',
      outputTokens: null,
    });
    expect(load('--api embeddings').prompts.classes[0]?.prompts.outputTokens).toBeNull();
  });

  it('are mixed by weight', () => {
    const { classes } = load(
      "--osl 9 --mix 3:chat.jsonl --mix 'long=0.5:isl=4096,prefix-tokens=7'",
    ).prompts;
    expect(classes).toMatchObject([
      { name: 'chat.jsonl', weight: 3, prompts: { kind: 'file', outputTokens: 9 } },
      {
        name: 'long',
        weight: 0.5,
        prompts: { inputTokens: 4096, outputTokens: 9, prefixTokens: 7 },
      },
    ]);
  });

  it.each([
    ['--dataset a --mix 1:b', 'contradict'],
    ['--dataset a --isl 5', 'contradict'],
    ['--mix a.jsonl', '--mix takes [name=]weight:prompts'],
    ["--mix '1:isl=5,colour=7'", '--mix takes isl'],
    ['--mix 1:a/x.jsonl --mix 2:b/x.jsonl', "two classes 'x.jsonl'"],
    ['--think-time 1s', '--think-time is the pause between turns'],
    ['--api embeddings --osl 5', 'no output tokens'],
    ['--isl 0', '--isl takes a number from 1'],
  ])('%s is refused', (flags, message) => {
    expect(() => load(flags)).toThrow(message);
  });
});

describe('the rest', () => {
  it('warms up by requests or time, or not at all', () => {
    expect(load('').warmup).toEqual({ requests: 1 });
    expect(load('--warmup 5').warmup).toEqual({ requests: 5 });
    expect(load('--warmup 10s').warmup).toEqual({ duration: 10 });
    expect(load('--warmup 0').warmup).toBeNull();
    expect(load('--replay a.jsonl').warmup).toBeNull();
  });

  it('reads objectives', () => {
    expect(load("--slo 'ttft<200ms, tpot<=50' --slo e2e<3s").slos).toEqual([
      { metric: 'ttft', limit: 0.2 },
      { metric: 'tpot', limit: 0.05 },
      { metric: 'e2e', limit: 3 },
    ]);
    expect(() => load('--slo ttft>5')).toThrow('--slo takes limits');
    expect(() => load('--slo speed<5')).toThrow('--slo takes limits');
  });

  it('names parts', () => {
    expect(load('--run-id r --part 2/3')).toMatchObject({ runId: 'r', part: { index: 1, of: 3 } });
    expect(() => load('--part 2/3')).toThrow('--part needs --run-id');
    expect(() => load('--run-id r --part 4/3')).toThrow('--part takes');
    expect(() => load(`--run-id 'a b'`)).toThrow('--run-id takes');
  });

  it('streams unless it is told or cannot', () => {
    expect(load('').stream).toBe(true);
    expect(load('--no-stream').stream).toBe(false);
    expect(load('--api embeddings').stream).toBe(false);
  });

  it('keeps a recording, sends it on, watches', () => {
    expect(load('--no-recording').settings.recording.enabled).toBe(false);
    expect(() => load('--no-recording -o x')).toThrow('contradict');
    expect(load('--attach 4312 --metrics-url http://h/metrics').settings).toMatchObject({
      attach: { pid: 4312 },
      metricsUrl: 'http://h/metrics',
      metricsInterval: 1,
    });
    expect(load('--metrics-url http://h/m --metrics-interval 500ms').settings).toMatchObject({
      metricsInterval: 0.5,
    });
    expect(load('--otlp-endpoint http://h:4318').settings.otlp).toMatchObject({ enabled: true });
  });
});

describe("other tools' flags", () => {
  it('are none of ours, each there once, and lead to one of ours', () => {
    const names = PEER_FLAGS.map(({ flag }) => flag);
    expect(new Set(names).size).toBe(names.length);
    expect(names.filter((name) => Object.hasOwn(loadUsage.options, name))).toEqual([]);
    // What several flags say together is put together afterwards.
    const together = new Set(
      'path host port stream rate-type data conversations fixed-schedule extra-inputs goodput range-ratio ramp-from ramp-to'.split(
        ' ',
      ),
    );
    const targets = PEER_FLAGS.flatMap(({ is }) => (is.kind === 'alias' ? [is.flag] : []));
    expect(
      targets.filter((name) => !together.has(name) && !Object.hasOwn(loadUsage.options, name)),
    ).toEqual([]);
  });

  it('in the table of the documentation are understood', () => {
    const page = readFileSync(
      join(import.meta.dirname, '..', '..', '..', 'docs', 'load.md'),
      'utf8',
    );
    const table = page.split('## Flags of other tools')[1] ?? '';
    const named = [...table.matchAll(/--[a-z][a-z-]*/g)].map(([flag]) => flag.slice(2));
    const known = new Set([
      ...Object.keys(loadUsage.options),
      ...PEER_FLAGS.map(({ flag }) => flag),
    ]);
    expect(named.length).toBeGreaterThan(60);
    expect(named.filter((flag) => !known.has(flag))).toEqual([]);
  });
});

describe("other tools' command lines", () => {
  it('vllm bench serve', () => {
    const options = parse(
      '--backend openai-chat --endpoint /v1/chat/completions --base-url http://127.0.0.1:18070 --model tiny ' +
        '--tokenizer models/tiny-hf --dataset-name random --random-input-len 64 --random-output-len 32 ' +
        '--random-range-ratio 0.5 --random-prefix-len 16 --num-prompts 24 --request-rate 8 --num-warmups 3 ' +
        '--goodput ttft:200 tpot:50 --percentile-metrics ttft,tpot --ignore-eos --temperature 0 --top-p 0.9 ' +
        '--result-filename out.json --disable-tqdm --seed 3',
    );
    expect(options).toMatchObject({
      model: 'tiny',
      seed: 3,
      ignoreEos: true,
      progress: false,
      warmup: { requests: 3 },
      extraBody: ['{"temperature":0}', '{"top_p":0.9}'],
      endpoint: { shown: 'http://127.0.0.1:18070/v1/chat/completions' },
      slos: [
        { metric: 'ttft', limit: 0.2 },
        { metric: 'tpot', limit: 0.05 },
      ],
      stages: [{ label: '8 req/s', requests: 24, duration: null, arrival: { burstiness: 1 } }],
      result: { files: { json: 'out.json' } },
    });
    expect(options.prompts.classes[0]?.prompts).toMatchObject({
      inputTokens: 64,
      inputDeviation: 32,
      outputTokens: 32,
      outputDeviation: 16,
      spread: 'uniform',
      prefixTokens: 16,
    });
    expect(options.notes).toEqual([
      expect.stringContaining('--percentile-metrics does nothing here'),
      expect.stringContaining('--tokenizer does nothing here'),
    ]);
  });

  it('vllm bench serve without a rate, with a ramp, and with a data set', () => {
    expect(
      parse(
        '--host 127.0.0.1 --port 8001 --request-rate inf --max-concurrency 16 --num-prompts 100',
      ),
    ).toMatchObject({
      endpoint: { shown: 'http://127.0.0.1:8001/v1/chat/completions' },
      stages: [{ label: 'c=16', requests: 100 }],
    });
    expect(
      load('--ramp-up-strategy linear --ramp-up-start-rps 2 --ramp-up-end-rps 10 --num-prompts 60')
        .stages,
    ).toMatchObject([
      {
        label: '2..10 req/s',
        duration: 10,
        requests: 60,
        arrival: { rate: 2, rateTo: 10, burstiness: 1 },
      },
    ]);
    expect(() => load('--ramp-up-strategy exponential')).toThrow(
      '--ramp-up-strategy takes linear here',
    );
    expect(
      load('--dataset-name sharegpt --dataset-path s.json').prompts.classes[0]?.prompts,
    ).toMatchObject({
      kind: 'file',
      path: 's.json',
    });
    expect(() => load('--dataset-name sonnet')).toThrow('--dataset-name takes random or sharegpt');
  });

  it('aiperf profile', () => {
    const options = parse(
      '-m mock -u localhost:8000 --endpoint-type chat --streaming --tokenizer tok --use-server-token-count ' +
        '--concurrency 8 --benchmark-duration 60 --benchmark-grace-period 3 --warmup-request-count 8 ' +
        '--prompt-input-tokens-mean 64 --prompt-output-tokens-mean 32 --prompt-input-tokens-stddev 4 ' +
        "--extra-inputs temperature:0.5 --extra-inputs ignore_eos:true --extra-inputs 'user:a b' " +
        '--ui none --no-gpu-telemetry --random-seed 5 --request-timeout-seconds 20 -H X-A:b ' +
        "--goodput 'request_latency:250 inter_token_latency:10'",
    );
    expect(options).toMatchObject({
      model: 'mock',
      seed: 5,
      drain: 3,
      warmup: { requests: 8 },
      timeouts: { total: 20 },
      progress: false,
      stream: true,
      extraBody: ['{"temperature":0.5}', '{"ignore_eos":true}', '{"user":"a b"}'],
      endpoint: { shown: 'http://localhost:8000/v1/chat/completions', headers: [['X-A', 'b']] },
      stages: [{ label: 'c=8', duration: 60 }],
      slos: [
        { metric: 'e2e', limit: 0.25 },
        { metric: 'tpot', limit: 0.01 },
      ],
    });
  });

  it('aiperf with conversations, a schedule, a rate', () => {
    expect(
      load(
        '--num-conversations 10 --conversation-turn-mean 3 --conversation-turn-delay-mean 500 -c 2',
      ),
    ).toMatchObject({ stages: [{ requests: 30 }], prompts: { turns: 3, thinkTime: 0.5 } });
    expect(
      load('--input-file t.jsonl --custom-dataset-type mooncake_trace --fixed-schedule'),
    ).toMatchObject({
      stages: [{ arrival: { kind: 'replay' } }],
      prompts: { classes: [{ prompts: { path: 't.jsonl' } }] },
    });
    expect(load('--request-rate 5 --request-rate-mode constant').stages).toMatchObject([
      { arrival: { kind: 'open', burstiness: null } },
    ]);
    expect(
      load('--request-rate 5 --arrival-pattern gamma --arrival-smoothness 2').stages,
    ).toMatchObject([{ arrival: { burstiness: 2 } }]);
  });

  it('guidellm benchmark', () => {
    const options = parse(
      '--target http://localhost:8000 --rate-type concurrent --rate 8 --max-seconds 30 --max-requests 50 ' +
        '--data prompt_tokens=256,output_tokens=128,prompt_tokens_stdev=8 --random-seed 1 --output-path r.json',
    );
    expect(options).toMatchObject({
      stages: [{ label: 'c=8', duration: 30, requests: 50 }],
      prompts: {
        classes: [{ prompts: { inputTokens: 256, inputDeviation: 8, outputTokens: 128 } }],
      },
    });
    expect(stages('--profile synchronous')).toEqual(['closed c=1, 30s']);
    expect(stages('--profile concurrent --rate 1,2 -d 1')).toEqual([
      'closed c=1, 1s',
      'closed c=2, 1s',
    ]);
    expect(load('--profile poisson --rate 4').stages).toMatchObject([
      { arrival: { burstiness: 1 } },
    ]);
    expect(stages('--profile constant --rate 4,8 -d 1')).toEqual([
      'open 4 req/s, 1s',
      'open 8 req/s, 1s',
    ]);
    expect(() => load('--profile sweep')).toThrow('--profile takes synchronous');
    expect(() => load('--data some/dataset=x')).toThrow('--data takes prompt_tokens');
  });

  it('are refused where they cannot mean the same, with what to use', () => {
    for (const [flags, remedy] of [
      ['--save-result', 'Use --save FILE.'],
      ['--artifact-dir x', '-o FOLDER takes the recording'],
      ['--max-error-rate 0.1', "Use --fail-on 'error_ratio>"],
      ['--traffic-scenario x', 'Use --isl'],
    ] as const) {
      expect(() => load(flags)).toThrow(
        expect.objectContaining({
          exitCode: 2,
          remedy: expect.stringContaining(remedy) as string,
        }) as Error,
      );
    }
  });

  it('may not say one thing twice', () => {
    expect(() => load('--num-prompts 5 -n 6')).toThrow(
      '--requests and --num-prompts say the same thing',
    );
    expect(() => load('--num-prompts 5 --max-requests 6')).toThrow(
      'say the same thing differently',
    );
    expect(load('--num-prompts 5 -n 5').stages).toMatchObject([{ requests: 5 }]);
  });

  it('have flags whose names are nearly right', () => {
    const unknown = (line: string) => () => parse(`${URL} ${line}`);
    expect(unknown('--concurency 4')).toThrow(
      expect.objectContaining({
        remedy: expect.stringContaining('--concurrency') as string,
      }) as Error,
    );
    expect(unknown('--num-promts 4')).toThrow(
      expect.objectContaining({
        remedy: expect.stringContaining('--num-prompts') as string,
      }) as Error,
    );
  });
});
