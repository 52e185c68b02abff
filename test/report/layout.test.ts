import { describe, expect, it } from 'vitest';
import { clipEnd, clipStart, displayWidth, pad, toAscii, wrap } from '../../src/report/layout.ts';

describe('displayWidth', () => {
  it('counts columns, not characters', () => {
    expect(displayWidth('abc')).toBe(3);
    expect(displayWidth('日本')).toBe(4);
    expect(displayWidth('e\u0301')).toBe(1);
    expect(displayWidth('🚀x')).toBe(3);
    expect(displayWidth('\u001b[1mbold\u001b[22m')).toBe(4);
  });
});

describe('wrap', () => {
  it('breaks at spaces and keeps a number with its unit', () => {
    expect(wrap('it took about 58 ms in all', 16)).toEqual(['it took about', '58 ms in all']);
  });

  it('cuts a word that is longer than the line', () => {
    expect(wrap('a abcdefghij b', 4)).toEqual(['a', 'abcd', 'efgh', 'ij b']);
    expect(wrap('日本語', 4)).toEqual(['日本', '語']);
  });

  it('indents every line as the first', () => {
    expect(wrap('  one two three', 9)).toEqual(['  one two', '  three']);
  });

  it('does not count marks', () => {
    expect(wrap('\u001b[1mone\u001b[22m two', 7)).toEqual(['\u001b[1mone\u001b[22m two']);
    expect(wrap('\u001b[1mabcdef\u001b[22m', 3).map(displayWidth)).toEqual([3, 3]);
  });
});

describe('clipping', () => {
  it('keeps the end of a path and the beginning of a title', () => {
    expect(clipStart('/srv/app/rerank.py', 12)).toBe('…p/rerank.py');
    expect(clipEnd('uvicorn app:main', 8)).toBe('uvicorn…');
    expect([clipStart('short', 5), clipEnd('short', 5)]).toEqual(['short', 'short']);
    expect(displayWidth(clipStart('/日本語/日本語.py', 8))).toBeLessThanOrEqual(8);
  });
});

describe('pad', () => {
  it('fills by columns', () => {
    expect(pad('日', 4)).toBe('日  ');
    expect(pad('12', 4, 'left')).toBe('  12');
    expect(pad('long', 2)).toBe('long');
  });
});

describe('toAscii', () => {
  it('replaces our signs and escapes the letters of others', () => {
    expect(toAscii('58–66 µs → … · ≥ 3×')).toBe('58-66 us > ~ - > 3x');
    expect(toAscii('é🚀')).toBe('\\u{e9}\\u{1f680}');
  });
});
