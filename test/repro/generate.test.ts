import { describe, expect, it } from 'vitest';
import { pruned } from '../../repro/generate/template.ts';
import { checkParameters } from '../../repro/parameters/read.ts';
import { judge } from '../../repro/trials/judge.ts';
import type { GroupEnd } from '../../repro/trials/process-group.ts';

describe('a template', () => {
  it('keeps what is wanted and loses the rest with its marks', () => {
    const text = 'a\n# region: one, two\nb\n# endregion\n  // region: three\nc\n  // endregion\nd';
    expect(pruned(text, new Set(['two']))).toBe('a\nb\nd');
    expect(pruned(text, new Set(['three']))).toBe('a\nc\nd');
  });

  it('with a mark too many or too few is refused', () => {
    expect(() => pruned('# region: a\nb', new Set())).toThrow(/without its end/);
    expect(() => pruned('# endregion', new Set())).toThrow(/without a region/);
    expect(() => pruned('# region: a\n# region: b\n', new Set())).toThrow(/within a region/);
  });
});

describe('the end of a trial', () => {
  const exit = (code: number, output: string): GroupEnd => ({
    ended: 'exit',
    code,
    signal: null,
    output,
    left: [],
  });

  it.each([
    [exit(1, 'attempt 3: x\nErrors: 3 / 20\n'), 'reproduced', 3],
    [exit(0, 'Errors: 0 / 20\n'), 'not-reproduced', 0],
  ] as const)('that counted is what it says', (end, outcome, errors) => {
    expect(judge(end, 'exception')).toMatchObject({ outcome, errors, attempts: 20, reason: null });
  });

  it.each([
    [exit(125, 'cannot test: no server'), /no server/],
    [exit(1, 'SyntaxError: what'), /ended with 1 before it counted: SyntaxError: what/],
    [exit(0, ''), /before it counted/],
    [exit(1, 'Errors: 0 / 20\n'), /ended with 1 after/],
    [exit(3, 'Errors: 2 / 20\n'), /ended with 3 after/],
    [{ ended: 'timeout', limit: 65, output: '' } as const, /within 65 s/],
    [{ ended: 'aborted', output: '' } as const, /stopped/],
    [{ ended: 'not-started', reason: 'no python3', output: '' } as const, /no python3/],
  ])('that did not is invalid, never "not reproduced"', (end, reason) => {
    const judged = judge(end, 'exception');
    expect(judged.outcome).toBe('invalid');
    expect(judged.reason).toMatch(reason);
  });

  it('without an end is what an oracle of progress asks about', () => {
    const end: GroupEnd = { ended: 'timeout', limit: 65, output: '' };
    expect(judge(end, 'no-progress').outcome).toBe('reproduced');
  });
});

describe('parameters', () => {
  const good = {
    schema_version: 1,
    language: 'python',
    script: 'repro.py',
    origin: 'call',
    hypothesis: null,
    call: { target: 'a:b', args: [[]] },
    oracle: { kind: 'exception' },
    attempts: 10,
    concurrency: 2,
    timeout_s: 5,
    seed: 1,
    packages: {},
    runtime: { name: 'python', version: '3.12.1' },
  };

  it('that are whole are taken', () => {
    expect(checkParameters(good, 'x')).toBe(good);
  });

  it.each([
    [{ schema_version: 2 }, /newer/],
    [{ script: '../other.py' }, /name of a file/],
    [{ oracle: { kind: 'luck' } }, /oracle.kind/],
    [{ attempts: 0 }, /attempts/],
    [{ timeout_s: -1 }, /timeout_s/],
    [{ call: { target: 'a:b', args: [] } }, /call.args/],
    [{ origin: 'traffic' }, /no traffic/],
    [{ origin: 'traffic', traffic: { base_url: 'x', requests: [] } }, /base_url/],
    [{ origin: 'traffic', traffic: { base_url: 'file:///etc', requests: [] } }, /base_url/],
    [{ origin: 'traffic', traffic: { base_url: 'http://a', requests: [{}] } }, /requests\[0\]/],
  ])('with %j are refused', (change, message) => {
    expect(() => checkParameters({ ...good, ...change }, 'x')).toThrow(message);
  });
});
