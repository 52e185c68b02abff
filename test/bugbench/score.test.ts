import { describe, expect, it } from 'vitest';
import { falseFindings, falseOnBusyMachine, isNamed, judge, ownPath, type Said } from './score.ts';
import type { BugCase } from './cases.ts';

const CASE: BugCase = {
  id: 'made-up',
  package: 'pool',
  issue: '',
  class: 'leak',
  driver: '/cases/made-up/driver.py',
  versions: { buggy: '1', fixed: '2' },
  recipes: {
    buggy: { kind: 'python', version: '3.11', packages: [] },
    fixed: { kind: 'python', version: '3.11', packages: [] },
  },
  kinds: ['fd-leak', 'socket-leak'],
  words: ['pool.py', 'Pool.take', 'ws'],
  flags: [],
  missed: null,
};

const finding = (over: Partial<Said> = {}): Said => ({
  code: 'TRC113',
  kind: 'socket-leak',
  severity: 'warning',
  confidence: 'likely',
  mechanism: null,
  summary: 'Pool.take of pool.py',
  where: [],
  ...over,
});
const at = (name: string, file = ''): Said['where'] => [{ function: name, file }];

describe('a finding names the place', () => {
  it('by its function, as a whole token', () => {
    expect(isNamed({ function: 'Pool.take', file: '' }, CASE.words)).toBe(true);
    expect(isNamed({ function: 'MyPool.take', file: '' }, CASE.words)).toBe(false);
    expect(isNamed({ function: 'Pool.takes', file: '' }, CASE.words)).toBe(false);
    expect(isNamed({ function: 'news', file: '' }, CASE.words)).toBe(false);
  });

  it('by the file of its package or of the standard library', () => {
    for (const file of [
      '/venv/lib/python3.11/site-packages/db/pool.py',
      '/usr/lib/python3.12/asyncio/pool.py',
      '/app/node_modules/ws/lib/server.js',
      '/app/node_modules/.store/a/node_modules/ws/index.js',
    ])
      expect(isNamed({ function: '', file }, CASE.words)).toBe(true);
  });

  it('not by the folder of the case, nor by the environment’s', () => {
    expect(isNamed({ function: 'main', file: '/cases/ws/pool.py' }, CASE.words)).toBe(false);
    expect(ownPath('/cache/ws/lib/python3.11/site-packages/db/core.py')).toBe('db/core.py');
  });
});

describe('the buggy release', () => {
  it('counts when kind and place are of one finding', () => {
    expect(judge(CASE, [finding({ where: at('Pool.take') })])).toEqual({
      found: true,
      kind: true,
      place: true,
    });
    expect(
      judge(CASE, [
        finding({ where: at('other') }),
        finding({ kind: 'loop-blocked', where: at('Pool.take') }),
      ]),
    ).toEqual({ found: true, kind: true, place: false });
  });

  it('does not count by summary alone, by a note, or by what is inconclusive', () => {
    expect(judge(CASE, [finding()]).place).toBe(false);
    const silent = { found: false, kind: false, place: false };
    expect(judge(CASE, [finding({ severity: 'note', where: at('Pool.take') })])).toEqual(silent);
    expect(judge(CASE, [finding({ confidence: 'inconclusive', where: at('Pool.take') })])).toEqual(
      silent,
    );
  });
});

describe('on a busy machine', () => {
  it('only what the case is about counts against the fixed release, and other leaks and locks', () => {
    const blocked = finding({ kind: 'loop-blocked', where: at('handler') });
    expect(falseOnBusyMachine(CASE, [blocked], [])).toEqual([]);
    expect(falseOnBusyMachine(CASE, [finding({ where: at('Pool.take') })], [])).toHaveLength(1);
    expect(falseOnBusyMachine(CASE, [finding({ kind: 'deadlock' })], [])).toHaveLength(1);
    const about = { ...CASE, kinds: ['loop-blocked'] };
    expect(falseOnBusyMachine(about, [blocked], [])).toEqual([]);
    const own = finding({ kind: 'loop-blocked', where: at('Pool.take') });
    expect(falseOnBusyMachine(about, [own], [])).toHaveLength(1);
    // Of a leak no block is what the case is about, wherever it is.
    expect(falseOnBusyMachine(CASE, [own], [])).toEqual([]);
  });
});

describe('the fixed release', () => {
  const fixed = { id: 'made-up', side: 'fixed' } as const;

  it('has a false finding for each of warning or above', () => {
    expect(falseFindings(fixed, [finding(), finding({ severity: 'note' })], [])).toHaveLength(1);
    expect(falseFindings({ ...fixed, side: 'buggy' }, [finding()], [])).toEqual([]);
  });

  it('is excused by case and kind alone', () => {
    const excuse = (id: string, kinds: string[]) => [{ id, kinds, reason: 'known' }];
    expect(falseFindings(fixed, [finding()], excuse('made-up', ['socket-leak']))).toEqual([]);
    expect(falseFindings(fixed, [finding()], excuse('made-up', ['deadlock']))).toHaveLength(1);
    expect(falseFindings(fixed, [finding()], excuse('another', ['socket-leak']))).toHaveLength(1);
  });
});
