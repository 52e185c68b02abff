import { describe, expect, it } from 'vitest';
import { maskArguments, maskText } from '../../../src/core/secrets/mask.ts';
import { forms, harmless } from './corpus.ts';

const masked = (input: string | readonly string[]): string =>
  typeof input === 'string' ? maskText(input) : maskArguments(input).join(' ');

/** The words that are not there, or not in this order. */
function missing(words: readonly string[], text: string): readonly string[] {
  let at = 0;
  return words.filter((word) => {
    const found = text.indexOf(word, at);
    if (found !== -1) at = found + word.length;
    return found === -1;
  });
}

describe('a credential', () => {
  it('is in 200 forms at least, of which most are told with each of three', () => {
    expect(new Set(forms().map(({ line }) => line)).size).toBeGreaterThanOrEqual(200);
    expect(forms().length).toBeGreaterThanOrEqual(500);
  });

  it.each(forms())('is hidden, and what stands around it is not: $line', (form) => {
    const text = masked(form.input);
    expect(form.gone.filter((one) => text.includes(one))).toEqual([]);
    expect({ text, missing: missing(form.stays, text) }).toEqual({ text, missing: [] });
  });

  it('that is hidden already changes nothing', () => {
    for (const { input } of forms()) {
      const once = typeof input === 'string' ? maskText(input) : maskArguments(input);
      expect(typeof once === 'string' ? maskText(once) : maskArguments(once)).toEqual(once);
    }
  });

  it('is hidden in each of many lines', () => {
    const lines = forms().flatMap(({ input }) =>
      typeof input === 'string' && !input.includes('\n') ? [input] : [],
    );
    const text = maskText(lines.join('\n'));
    expect(['S3cretValue9', 'k8Zt2Qm4Lw9XcVb7'].filter((one) => text.includes(one))).toEqual([]);
  });
});

describe('a line without a credential', () => {
  it.each(harmless().map((input) => ({ input })))('stays as it is: $input', ({ input }) => {
    expect(typeof input === 'string' ? maskText(input) : maskArguments(input)).toEqual(input);
  });

  it('stays as it is, whatever its characters', () => {
    const texts = ['', ' ', '\n\n', '\0', '\u202e', '😀', '\ud800', 'ä=ö', '%', '%3', '\\'];
    for (const text of texts) expect(maskText(text)).toBe(text);
    expect(maskArguments([])).toEqual([]);
    expect(maskArguments(['constructor', '__proto__', '-p', 'x'])).toEqual([
      'constructor',
      '__proto__',
      '-p',
      'x',
    ]);
  });
});
