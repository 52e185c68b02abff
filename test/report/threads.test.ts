import { describe, expect, it } from 'vitest';
import type { ThreadView } from '../../src/core/threads.ts';
import { cycles, renderThreads } from '../../src/report/threads.ts';

let tids = 0;
function thread(
  name: string,
  holders: readonly string[],
  wait: ThreadView['wait'] = 'lock',
): ThreadView {
  tids++;
  const on = { label: 'lock', kind: 'lock' };
  return { tid: tids, name, wait, hasGil: false, on, holders, peer: null, frames: [] };
}

describe('rings of waiting threads', () => {
  it('are found once each, without those that only wait behind them', () => {
    const behind = thread('behind', ['a']);
    const ring = [thread('a', ['b']), thread('b', ['c']), thread('c', ['a'])];
    const alone = thread('alone', ['alone']);
    expect(cycles([behind, ...ring, alone])).toEqual([['a', 'b', 'c'], ['alone']]);
    const process = { pid: 7, title: 't', version: '3.11.7' };
    const text = renderThreads(
      { process, look: { threads: ring, knowsLocks: true } },
      { color: false, width: 80, unicode: true },
    );
    expect(text).toContain('a → b → c → a: each waits for the next');
  });

  it('are none in a chain, of the GIL, of shared locks, or of threads with one name', () => {
    expect(cycles([thread('a', ['b']), thread('b', ['c']), thread('c', [], 'running')])).toEqual(
      [],
    );
    expect(cycles([thread('a', ['b'], 'gil'), thread('b', ['a'])])).toEqual([]);
    expect(cycles([thread('a', ['b', 'c']), thread('b', ['a'])])).toEqual([]);
    expect(cycles([thread('w', ['w']), thread('w', [])])).toEqual([]);
  });
});
