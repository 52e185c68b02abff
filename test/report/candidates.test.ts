import { describe, expect, it } from 'vitest';
import { renderCandidates, renderCandidatesJson } from '../../src/report/candidates.ts';
import { displayWidth } from '../../src/report/layout.ts';
import { renderProgress } from '../../src/report/progress.ts';

const surface = { color: false, width: 60, unicode: true } as const;

describe('the list of candidates', () => {
  it('is a table, busiest first, with the command for the first', () => {
    const rows = [
      {
        target: { pid: 99 },
        runtime: { name: 'node', version: null },
        title: 'node a.js',
        user: 'root',
        cpu: 0,
        age: 12,
      },
      {
        target: { pid: 4312 },
        runtime: { name: 'python', version: '3.11.7' },
        title: `uvicorn app:main \u001b[2J${'x'.repeat(200)}`,
        user: 'a-long-user-name',
        cpu: 0.34,
        age: 262_800,
      },
    ];
    const text = renderCandidates(rows, surface);
    expect(text).toMatchInlineSnapshot(`
      " PID  RUNTIME        USER           CPU     AGE  TITLE
      4312  python 3.11.7  a-long-user…  34 %  3.04 d  uvicorn ap…
        99  node           root           0 %    12 s  node a.js

      Watch one of them: trace attach 4312
      "
    `);
    for (const line of text.split('\n')) expect(displayWidth(line)).toBeLessThanOrEqual(60);
  });

  it('has a column for what containers call their processes, where there are any', () => {
    const common = { runtime: { name: 'node', version: null }, user: 'root', cpu: 0, age: 12 };
    const rows = [
      { ...common, target: { pid: 1 }, title: 'outside', namespacePid: null, container: null },
      {
        ...common,
        target: { pid: 99 },
        title: 'named',
        namespacePid: 7,
        container: '3f2a1b9c0d4e',
      },
      {
        ...common,
        target: { pid: 100 },
        title: 'known',
        namespacePid: 1,
        container: 'pid namespace',
      },
    ];
    expect(renderCandidates(rows, { ...surface, width: 90 })).toMatchInlineSnapshot(`
      "PID  RUNTIME  USER  CPU   AGE  IN CONTAINER           TITLE
        1  node     root  0 %  12 s                         outside
       99  node     root  0 %  12 s  pid 7 in 3f2a1b9c0d4e  named
      100  node     root  0 %  12 s  pid 1                  known

      Watch one of them: trace attach 1
      "
    `);
    const { candidates } = JSON.parse(renderCandidatesJson(rows)) as {
      candidates: readonly object[];
    };
    expect(candidates[1]).toMatchObject({ namespace_pid: 7, container: '3f2a1b9c0d4e' });
    expect(candidates[0]).toMatchObject({ namespace_pid: null, container: null });
  });

  it('says so when there is nothing to list', () => {
    expect(renderCandidates([], surface)).toContain('No Python or Node process');
  });
});

describe('the status line', () => {
  const state = {
    pid: 4312,
    title: 'uvicorn \u001b[2J app:main',
    elapsed: 3.4,
    duration: 10,
    watchesLoop: true,
    blocked: 3,
    worst: 0.84,
    gaps: 0.02,
  };

  it('says how far the run is and what it has seen', () => {
    expect(renderProgress(state, { ...surface, width: 120 })).toBe(
      '3 s of 10 s: pid 4312, loop stood still 3× (worst 840 ms), 20 ms not covered · uvicorn \\x1b[2J app:main',
    );
    expect(
      renderProgress({ ...state, duration: null, blocked: 0, gaps: 0 }, { ...surface, width: 120 }),
    ).toBe('3 s, Ctrl-C ends: pid 4312, loop turning · uvicorn \\x1b[2J app:main');
  });

  it.each([40, 60, 80])('leaves one of %i columns free', (width) => {
    expect(displayWidth(renderProgress(state, { ...surface, width }))).toBeLessThan(width);
  });
});
