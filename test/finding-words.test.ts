import { join } from 'node:path';
import { describe, expect, it } from 'vitest';
import { sourceFiles } from './architecture.ts';
import { wordReaders } from './finding-words.ts';

const ROOT = join(import.meta.dirname, '..');
const sources = sourceFiles(ROOT, ['src', 'collectors', 'repro']);

const planted = (text: string) => wordReaders([{ path: 'src/planted.ts', text }]);

describe('words of findings', () => {
  it('are read nowhere: not by a regular expression, nor by looking for a piece of text', () => {
    expect(sources.length).toBeGreaterThan(500);
    expect(wordReaders(sources)).toEqual([]);
  });

  it.each([
    "const text = `${main.mechanism ?? ''} ${main.summary}`;\nconst pool = /pool/i.test(text);",
    'const text = `${main.summary}`;\nconst seen = (pattern: RegExp) => pattern.test(text);',
    "const by = (mechanism: RegExp, one: Finding) => mechanism.test(one.mechanism ?? '');",
    'const f = ({ mechanism }: Finding) => /lock/.exec(mechanism as string);',
    "const work = main.mechanism?.startsWith('per-') === true;",
    "const host = finding.summary.includes('host');",
    'const host = finding.evidence[0].summary.match(/host/);',
    "const bare = (one.remedy ?? '').replace(PATTERN, '');",
    'const told = finding.because?.why.search(/gc/) !== -1;',
    [
      'function textOf(finding: Finding): string {',
      "  return [finding.summary, ...finding.evidence.map(({ summary }) => summary)].join('');",
      '}',
      'const facts = { errorText: textOf(errors) };',
      'const isFull = REFUSES.test(facts.errorText);',
    ].join('\n'),
    [
      'const textOf = (finding: Finding) => printable(finding.summary);',
      "const isFull = textOf(one).toLowerCase().endsWith('full');",
    ].join('\n'),
  ])('are seen to be read by %s', (text) => {
    const found = planted(`${text}\n`);
    expect(found).toHaveLength(1);
    expect(found[0]).toMatch(/^src\/planted\.ts:\d+ /);
  });

  it.each([
    "const isHost = main.mechanism === 'host-bound';",
    'const line = outside(finding.summary, 600);',
    "const words = verdict.outcome.replace('-', ' ');",
    'const isLoop = LOOP.test(place.function);',
    'const lines = page.paragraph(finding.summary);',
    'const summary = one.summary;\nfunction other(summary: string) { return /x/.test(summary); }',
    'const weight = FAILED[finding.mechanism];',
  ])('are not seen to be read by %s', (text) => {
    expect(planted(`${text}\n`)).toEqual([]);
  });
});
