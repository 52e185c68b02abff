import { describe, expect, it } from 'vitest';
import { decideSurface, type SurfaceFacts } from '../../src/report/style.ts';

const facts = (override: Partial<SurfaceFacts> = {}): SurfaceFacts => ({
  env: {},
  isTTY: true,
  columns: 100,
  noColor: false,
  ...override,
});

describe('colour', () => {
  it.each([
    ['on a terminal', facts(), true],
    ['not into a pipe', facts({ isTTY: false }), false],
    ['not with --no-color', facts({ noColor: true, env: { FORCE_COLOR: '1' } }), false],
    ['not with NO_COLOR', facts({ env: { NO_COLOR: '1' } }), false],
    ['with an empty NO_COLOR', facts({ env: { NO_COLOR: '' } }), true],
    ['with FORCE_COLOR into a pipe', facts({ isTTY: false, env: { FORCE_COLOR: '1' } }), true],
    ['with FORCE_COLOR over NO_COLOR', facts({ env: { FORCE_COLOR: '1', NO_COLOR: '1' } }), true],
    ['not with FORCE_COLOR=0', facts({ env: { FORCE_COLOR: '0' } }), false],
    ['not on a dumb terminal', facts({ env: { TERM: 'dumb' } }), false],
  ])('is %s', (_, given, color) => {
    expect(decideSurface(given).color).toBe(color);
  });
});

describe('width', () => {
  it.each([
    [facts(), 100],
    [facts({ columns: undefined }), 80],
    [facts({ columns: undefined, env: { COLUMNS: '60' } }), 60],
    [facts({ columns: undefined, env: { COLUMNS: 'wide' } }), 80],
    [facts({ columns: 12 }), 40],
    [facts({ columns: 400 }), 120],
    [facts({ columns: 0 }), 80],
  ])('follows the terminal, then COLUMNS, within bounds (%#)', (given, width) => {
    expect(decideSurface(given).width).toBe(width);
  });
});

describe('the character set', () => {
  it.each([
    [{}, true],
    [{ LANG: 'en_GB.UTF-8' }, true],
    [{ LANG: 'C.utf8' }, true],
    [{ LANG: 'C' }, false],
    [{ LANG: 'en_GB.UTF-8', LC_ALL: 'POSIX' }, false],
    [{ LANG: 'C', LC_CTYPE: 'de_DE.UTF-8' }, true],
    [{ LC_ALL: '', LANG: 'en_GB.ISO-8859-1' }, false],
  ])('follows the locale %j', (env, unicode) => {
    expect(decideSurface(facts({ env })).unicode).toBe(unicode);
  });
});
