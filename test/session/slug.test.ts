import { describe, expect, it } from 'vitest';
import { seededRandom } from '../../src/core/random.ts';
import { isSlug, SLUG_LIMIT, slugOf } from '../../src/session/slug.ts';
import { rounds } from '../rounds.ts';

const NOW = new Date('2026-11-23T10:00:00Z');
const slug = (title: string, ...taken: string[]): string =>
  slugOf(title, { taken: new Set(taken), now: NOW });

describe('a slug', () => {
  it.each([
    ['Login fails on mobile Safari!!', 'login-fails-on-mobile-safari'],
    ['a/b.c', 'a-b-c'],
    ['../../etc/passwd', 'etc-passwd'],
    ['   spaces\tand\nlines  ', 'spaces-and-lines'],
    ['abcdefghij abcdefghij abcdefgh ijk', 'abcdefghij-abcdefghij-abcdefgh'],
    ['abcdefghij abcdefghij abcdefg hijk', 'abcdefghij-abcdefghij-abcdefg'],
    ['日本語', 'session-2026-11-23'],
    ['!!!', 'session-2026-11-23'],
    ['', 'session-2026-11-23'],
  ])('of %j is %s', (title, expected) => {
    expect(slug(title)).toBe(expected);
  });

  it('that is taken gets a number within its length', () => {
    const long = 'abcdefghij-abcdefghij-abcdefgh';
    expect(slug('x', 'x')).toBe('x-2');
    expect(slug('x', 'x', 'x-2')).toBe('x-3');
    expect(slug(long, long)).toBe('abcdefghij-abcdefghij-abcdef-2');
    expect(slug('!', 'session-2026-11-23')).toBe('session-2026-11-23-2');
  });

  it('is one whatever the title', () => {
    const random = seededRandom(11);
    const alphabet = [
      'a',
      'Z',
      '9',
      '-',
      '--',
      ' ',
      '.',
      '/',
      '\\',
      '\0',
      'é',
      '日',
      '\u{1f600}',
      '\ud800',
      '\n',
      'K',
    ];
    for (let round = 0; round < rounds(20_000); round++) {
      const length = Math.floor(random() * 50);
      const title = Array.from(
        { length },
        () => alphabet[Math.floor(random() * alphabet.length)],
      ).join('');
      const first = slug(title);
      const second = slug(title, first);
      for (const one of [first, second]) {
        expect(isSlug(one), JSON.stringify(title)).toBe(true);
        expect(one.length).toBeLessThanOrEqual(SLUG_LIMIT);
        expect(one.endsWith('-') || one.includes('--')).toBe(false);
      }
      expect(second).not.toBe(first);
    }
  });

  it('of ten megabytes comes at once', () => {
    expect(slug('x'.repeat(10 * 2 ** 20))).toBe('x'.repeat(SLUG_LIMIT));
  });
});
