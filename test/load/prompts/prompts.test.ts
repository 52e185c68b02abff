import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, describe, expect, it } from 'vitest';
import { TraceError } from '../../../src/core/errors.ts';
import type { LoadApi } from '../../../src/core/load-types.ts';
import type { BodyPlan, PromptClass, PromptPlan } from '../../../src/load/plan.ts';
import { checkPrompts, openPrompts } from '../../../src/load/prompts/prompts.ts';
import { WORDS } from '../../../src/load/prompts/words.ts';

const folder = mkdtempSync(join(tmpdir(), 'tracewright-prompts-'));
afterAll(() => rmSync(folder, { recursive: true, force: true }));

function file(name: string, lines: readonly unknown[]): string {
  const path = join(folder, name);
  const text = lines.map((line) => (typeof line === 'string' ? line : JSON.stringify(line)));
  writeFileSync(path, text.join('\n'));
  return path;
}

const BODY: BodyPlan = { model: 'm', stream: true, ignoreEos: false, extra: {} };
const SYNTHETIC = {
  kind: 'synthetic',
  inputTokens: 40,
  inputDeviation: 0,
  outputTokens: 8,
  outputDeviation: 0,
  prefixTokens: 0,
  prefixes: 1,
} as const satisfies PromptClass['prompts'];

function synthetic(changes: Partial<typeof SYNTHETIC | Record<string, unknown>> = {}): PromptPlan {
  const prompts = { ...SYNTHETIC, ...changes } as PromptClass['prompts'];
  return { classes: [{ name: '', weight: 1, prompts }], turns: 1, thinkTime: 0 };
}

function dataset(
  path: string,
  changes: Partial<{ order: 'sequential' | 'random' | 'once'; outputTokens: number }> = {},
  turns = 1,
): PromptPlan {
  const prompts = {
    kind: 'file',
    path,
    order: 'sequential',
    outputTokens: null,
    ...changes,
  } as const;
  return { classes: [{ name: '', weight: 1, prompts }], turns, thinkTime: 0 };
}

interface Sent {
  readonly messages: readonly { readonly role: string; readonly content: string }[];
  readonly [field: string]: unknown;
}

function source(plan: PromptPlan, { body = BODY, api = 'chat' as LoadApi, seed = 0 } = {}) {
  const prompts = openPrompts(plan, body, api, seed);
  const prepare = (index: number) => {
    const request = prompts.prepare(index);
    if (request === null) throw new Error('at an end');
    return request;
  };
  return {
    prompts,
    prepare,
    body: (index: number) => JSON.parse(prepare(index).body.toString()) as Sent,
    text: (index: number) => {
      const sent = JSON.parse(prepare(index).body.toString()) as Sent;
      return sent.messages[0]?.content ?? '';
    },
  };
}

describe('synthetic prompts', () => {
  it('have as many words as tokens were asked for', () => {
    const { text } = source(synthetic({ inputTokens: 100 }));
    expect(text(0).split(' ')).toHaveLength(100);
    expect(new Set(WORDS).size).toBe(1024);
    expect(
      text(0)
        .split(' ')
        .every((word) => WORDS.includes(word)),
    ).toBe(true);
  });

  it('are the same for a seed and an index, whoever asks and in whatever order', () => {
    const one = source(synthetic(), { seed: 7 });
    const other = source(synthetic(), { seed: 7 });
    const forth = [0, 1, 2, 5_000_000_000].map((index) => one.prepare(index).body.toString());
    const back = [5_000_000_000, 2, 1, 0].map((index) => other.prepare(index).body.toString());
    expect(forth).toEqual(back.toReversed());
    expect(source(synthetic(), { seed: 8 }).text(0)).not.toBe(one.text(0));
  });

  it('share no beginning, so that no prefix cache finds one', () => {
    const { text } = source(synthetic());
    const beginnings = Array.from({ length: 5000 }, (_, index) =>
      text(index).split(' ').slice(0, 4).join(' '),
    );
    expect(new Set(beginnings).size).toBe(5000);
  });

  it('share the prefixes that were asked for, and nothing more', () => {
    const { text } = source(synthetic({ prefixTokens: 20, prefixes: 3 }));
    const texts = Array.from({ length: 200 }, (_, index) => text(index).split(' '));
    expect(texts.every((words) => words.length === 60)).toBe(true);
    expect(new Set(texts.map((words) => words.slice(0, 20).join(' '))).size).toBe(3);
    expect(new Set(texts.map((words) => words.slice(20).join(' '))).size).toBe(200);
  });

  it('vary around the mean, normally or evenly', () => {
    const lengths = (spread?: 'uniform') => {
      const { body } = source(
        synthetic({ inputTokens: 200, inputDeviation: 50, outputDeviation: 2, spread }),
      );
      return Array.from({ length: 2000 }, (_, index) => {
        const sent = body(index);
        return {
          input: sent.messages[0]?.content.split(' ').length ?? 0,
          output: Number(sent['max_tokens']),
        };
      });
    };
    const mean = (values: readonly number[]) => values.reduce((a, b) => a + b, 0) / values.length;
    const normal = lengths().map(({ input }) => input);
    expect(mean(normal)).toBeGreaterThan(196);
    expect(mean(normal)).toBeLessThan(204);
    expect(Math.max(...normal)).toBeGreaterThan(300);
    const even = lengths('uniform');
    expect(Math.min(...even.map(({ input }) => input))).toBeGreaterThanOrEqual(150);
    expect(Math.max(...even.map(({ input }) => input))).toBeLessThanOrEqual(250);
    expect(new Set(even.map(({ output }) => output))).toEqual(new Set([6, 7, 8, 9, 10]));
  });
});

describe('bodies', () => {
  it.each([
    [
      'chat',
      {
        messages: [{ role: 'user', content: 'hi' }],
        max_tokens: 8,
        stream_options: { include_usage: true },
      },
    ],
    ['completions', { prompt: 'hi', max_tokens: 8, stream_options: { include_usage: true } }],
    ['responses', { input: 'hi', max_output_tokens: 8 }],
  ] as const)('of %s', (api, expected) => {
    const path = file('hi.jsonl', [{ prompt: 'hi', max_tokens: 8 }]);
    expect(source(dataset(path), { api }).body(0)).toEqual({
      model: 'm',
      stream: true,
      ...expected,
    });
  });

  it('of embeddings have neither a limit nor a stream', () => {
    const path = file('hi.jsonl', [{ prompt: 'hi', max_tokens: 8 }]);
    expect(source(dataset(path), { api: 'embeddings' }).body(0)).toEqual({
      model: 'm',
      input: 'hi',
    });
  });

  it('without a stream ask for no usage in one', () => {
    const { body } = source(synthetic(), { body: { ...BODY, stream: false, ignoreEos: true } });
    expect(body(0)).toMatchObject({ stream: false, ignore_eos: true });
    expect(body(0)).not.toHaveProperty('stream_options');
  });

  it('hold what was given beside, which wins; null leaves a field out', () => {
    const extra = { temperature: 0, stream_options: null, max_completion_tokens: 99 };
    const sent = source(synthetic(), { body: { ...BODY, extra } }).body(0);
    expect(sent).toMatchObject({ temperature: 0, max_completion_tokens: 99 });
    expect(sent).not.toHaveProperty('stream_options');
    expect(sent).not.toHaveProperty('max_tokens');
  });

  it('call the limit what the server calls it', () => {
    const body = { ...BODY, outputLimit: 'max_completion_tokens' } as const;
    expect(source(synthetic(), { body }).body(0)).toMatchObject({ max_completion_tokens: 8 });
  });

  it('escape what a data set says', () => {
    const path = file('quote.jsonl', [{ prompt: 'say "hi"\n\u2028\u0007 ✓' }]);
    expect(source(dataset(path)).text(0)).toBe('say "hi"\n\u2028\u0007 ✓');
  });
});

describe('data sets', () => {
  it.each([
    ['a prompt', { prompt: 'one' }, 'one'],
    ['text, as AIPerf has it', { text: 'one' }, 'one'],
    ['text_input', { text_input: 'one' }, 'one'],
    ['a bare string', JSON.stringify('one'), 'one'],
    [
      'ShareGPT',
      {
        conversations: [
          { from: 'human', value: 'one' },
          { from: 'gpt', value: '12345678' },
        ],
      },
      'one',
    ],
    ['turns', { turns: [{ text: 'one' }, 'two'] }, 'one'],
  ])('take %s', (_, record, text) => {
    expect(source(dataset(file('one.jsonl', [record]))).text(0)).toBe(text);
  });

  it('take whole messages and whole bodies', () => {
    const messages = [
      { role: 'system', content: 'be short' },
      { role: 'user', content: 'hi' },
    ];
    const path = file('whole.jsonl', [
      { messages, max_tokens: 5 },
      { body: { messages, temperature: 1, stream: false, model: 'theirs' } },
    ]);
    const { body } = source(dataset(path));
    expect(body(0)).toMatchObject({ messages, max_tokens: 5 });
    expect(body(1)).toEqual({
      model: 'theirs',
      messages,
      temperature: 1,
      stream: true,
      stream_options: { include_usage: true },
    });
  });

  it('take one JSON array', () => {
    const path = file('array.json', ['[', '{"prompt": "one"},', '{"prompt": "two"}', ']']);
    const { text } = source(dataset(path));
    expect([text(0), text(1), text(2)]).toEqual(['one', 'two', 'one']);
  });

  it('guess the length of an answer from the one that is there, unless it is given', () => {
    const path = file('share.jsonl', [
      {
        conversations: [
          { from: 'human', value: 'q' },
          { from: 'gpt', value: 'x'.repeat(400) },
        ],
      },
    ]);
    expect(source(dataset(path)).body(0)).toMatchObject({ max_tokens: 100 });
    expect(source(dataset(path, { outputTokens: 7 })).body(0)).toMatchObject({ max_tokens: 7 });
  });

  it('begin again, or are shuffled, or end', () => {
    const path = file('many.jsonl', [
      '',
      { prompt: '0' },
      '  ',
      { prompt: '1' },
      { prompt: '2' },
      '',
    ]);
    const texts = (order: 'sequential' | 'random', seed = 0) => {
      const { text } = source(dataset(path, { order }), { seed });
      return Array.from({ length: 60 }, (_, index) => text(index)).join('');
    };
    expect(texts('sequential')).toBe('012'.repeat(20));
    expect(texts('random')).toBe(texts('random'));
    expect(texts('random')).not.toBe(texts('random', 1));
    expect(new Set(texts('random'))).toEqual(new Set('012'));
    const { prompts } = source(dataset(path, { order: 'once' }));
    expect([2, 3].map((index) => prompts.prepare(index)?.index)).toEqual([2, undefined]);
  });

  it('replay traces: times, lengths, and blocks that are equal where their ids are', () => {
    const path = file('trace.jsonl', [
      { timestamp: 0, input_length: 1100, output_length: 52, hash_ids: [46, 47, 48] },
      { timestamp: 1500, input_length: 600, output_length: 26, hash_ids: [46, 50] },
    ]);
    const { prepare, text, body } = source(dataset(path, { order: 'once' }));
    expect([prepare(0).due, prepare(1).due]).toEqual([0, 1.5]);
    expect(text(0).split(' ')).toHaveLength(1100);
    expect(text(1).split(' ')).toHaveLength(600);
    const block = (index: number, from: number) =>
      text(index)
        .split(' ')
        .slice(from, from + 512)
        .join(' ');
    expect(block(0, 0)).toBe(block(1, 0));
    expect(block(0, 512).slice(0, 40)).not.toBe(block(1, 512).slice(0, 40));
    expect(body(1)).toMatchObject({ max_tokens: 26 });
  });

  it.each([
    ['no JSON', ['{"prompt": "a"}', '', '{"prompt": '], 'line 3: is not JSON'],
    ['no object', ['[1]', '7'], 'is not JSON'],
    ['nothing asked', [{ prompt: 'a' }, { question_id: 7 }], 'line 2: asks nothing'],
    ['odd messages', [{ messages: [{ text: 'a' }] }], 'line 1: messages is no list'],
    ['nothing in it', ['', ' '], 'holds no records'],
    [
      'only answers',
      [{ conversations: [{ from: 'gpt', value: 'a' }] }],
      'line 1: holds no turn of a human',
    ],
  ])('say where they hold %s', (_, lines, message) => {
    const path = file('wrong.jsonl', lines);
    expect(() => checkPrompts(dataset(path))).toThrow(message);
  });

  it('of a replay need times that do not go back', () => {
    const check = (lines: readonly unknown[]) => () =>
      checkPrompts(dataset(file('times.jsonl', lines), { order: 'once' }));
    expect(check([{ prompt: 'a', timestamp: 5 }, { prompt: 'a' }])).toThrow(
      'line 2: has no timestamp',
    );
    expect(
      check([
        { prompt: 'a', timestamp: 5 },
        { prompt: 'a', timestamp: 4 },
      ]),
    ).toThrow('line 2: has a timestamp before');
    expect(check([{ prompt: 'a', timestamp: 'x' }])).toThrow('line 1: timestamp is no number');
    expect(
      check([
        { prompt: 'a', timestamp: 5 },
        { prompt: 'a', timestamp: 5 },
      ]),
    ).not.toThrow();
  });

  it('that are not there are not found', () => {
    try {
      checkPrompts(dataset(join(folder, 'missing.jsonl')));
      expect.unreachable();
    } catch (error) {
      expect(error).toBeInstanceOf(TraceError);
      expect(error).toMatchObject({ exitCode: 3 });
    }
  });

  it('may have lines longer than what is read at once', () => {
    const long = 'x'.repeat(3_000_000);
    const path = file('long.jsonl', [{ prompt: 'short' }, { prompt: long }, { prompt: 'end' }]);
    const { text } = source(dataset(path));
    expect([text(0), text(1).length, text(2)]).toEqual(['short', 3_000_000, 'end']);
  });
});

describe('conversations', () => {
  it('carry what was said before', () => {
    const plan = { ...synthetic({ prefixTokens: 5 }), turns: 3 };
    const { prompts, prepare } = source(plan);
    expect(prompts.wantsAnswers).toBe(true);
    const messagesOf = (body: Buffer) => (JSON.parse(body.toString()) as Sent).messages;
    const first = prepare(3);
    expect(first).toMatchObject({ session: 1, turn: 0 });
    prompts.answered(first, 'answer one');
    const second = prepare(4);
    const said = messagesOf(second.body);
    expect(said.map(({ role }) => role)).toEqual(['user', 'assistant', 'user']);
    expect(said[0]).toEqual(messagesOf(first.body)[0]);
    expect(said[1]?.content).toBe('answer one');
    // The prefix stands at the beginning of a conversation only.
    expect(said[0]?.content.split(' ')).toHaveLength(45);
    expect(said[2]?.content.split(' ')).toHaveLength(40);
    prompts.answered(second, 'answer two');
    expect(messagesOf(prepare(5).body)).toHaveLength(5);
  });

  it('of a data set need enough turns', () => {
    const path = file('turns.jsonl', [
      {
        conversations: [
          { from: 'human', value: 'a' },
          { from: 'gpt', value: 'b' },
          { from: 'human', value: 'c' },
        ],
      },
      { prompt: 'alone' },
    ]);
    expect(() => checkPrompts(dataset(path, {}, 2))).toThrow(
      'line 2: holds 1 turns, --turns asks for 2',
    );
    const { prompts, prepare } = source(dataset(path, {}, 2));
    prompts.answered(prepare(0), 'b2');
    const sent = JSON.parse(prepare(1).body.toString()) as Sent;
    expect(sent.messages.map(({ content }) => content)).toEqual(['a', 'b2', 'c']);
  });
});

describe('a mix', () => {
  it('has its shares, and the same class for a request in any worker', () => {
    const classes = [
      { name: 'short', weight: 3, prompts: SYNTHETIC },
      { name: 'long', weight: 1, prompts: { ...SYNTHETIC, inputTokens: 80 } },
    ];
    const plan = { classes, turns: 1, thinkTime: 0 };
    const names = (prompts: ReturnType<typeof source>) =>
      Array.from({ length: 4000 }, (_, index) => prompts.prepare(index).promptClass);
    const drawn = names(source(plan));
    const share = drawn.filter((name) => name === 'short').length / drawn.length;
    expect(share).toBeGreaterThan(0.72);
    expect(share).toBeLessThan(0.78);
    expect(names(source(plan))).toEqual(drawn);
  });
});
