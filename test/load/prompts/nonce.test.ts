import { describe, expect, it } from 'vitest';
import type { BodyPlan, PromptPlan } from '../../../src/load/plan.ts';
import { openPrompts } from '../../../src/load/prompts/prompts.ts';

const BODY: BodyPlan = { model: 'm', stream: true, ignoreEos: false, extra: {} };
const PLAN: PromptPlan = {
  classes: [
    {
      name: '',
      weight: 1,
      prompts: {
        kind: 'synthetic',
        inputTokens: 20,
        inputDeviation: 0,
        outputTokens: 8,
        outputDeviation: 0,
        prefixTokens: 0,
        prefixes: 1,
      },
    },
  ],
  turns: 1,
  thinkTime: 0,
  checkNonce: true,
};

const source = openPrompts(PLAN, BODY, 'chat', 7);

function asked(index: number) {
  const request = source.prepare(index);
  if (request === null) throw new Error('no request');
  const { messages } = JSON.parse(request.body.toString()) as { messages: { content: string }[] };
  return { request, text: messages[0]?.content ?? '' };
}

describe('the mark of a request', () => {
  it('stands in its prompt, and no two have the same', () => {
    const marks = Array.from({ length: 1000 }, (_, i) => /TW\w+/.exec(asked(i).text)?.[0]);
    expect(new Set(marks).size).toBe(1000);
    expect(source.wantsAnswers).toBe(true);
  });

  it('in the answer of another is a failure that names both', () => {
    expect(source.answered(asked(3).request, `Of course! ${asked(12).text}`)).toMatchObject({
      class: 'crosstalk',
      detail: 'request 3 was answered with the mark of request 12',
    });
  });

  it('is found beside the own one', () => {
    const { request, text } = asked(3);
    expect(source.answered(request, `${text} ${asked(4).text}`)?.class).toBe('crosstalk');
  });

  it.each([
    ['its own', () => asked(3).text],
    ['none', () => 'The answer is 42.'],
    ['a mistyped one', () => asked(12).text.replace(/x12x./, 'x12xz')],
    ['one of another seed', () => 'TW00000000x12x00000000'],
    ['nothing but marks of its own, thousands of times', () => asked(3).text.repeat(3000)],
  ])('with %s in the answer is none', (_, text) => {
    expect(source.answered(asked(3).request, text())).toBeNull();
  });

  it('is not there unless it is asked for', () => {
    const { checkNonce: _, ...plan } = PLAN;
    const plain = openPrompts(plan, BODY, 'chat', 7);
    expect(plain.wantsAnswers).toBe(false);
    expect(plain.prepare(0)?.body.toString()).not.toContain('TW');
  });
});
