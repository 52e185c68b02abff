import { describe, expect, it } from 'vitest';
import { frameOrigin, rankPlaces } from '../../src/core/place.ts';
import type { Frame } from '../../src/core/types.ts';

const frame = (name: string, file = `/app/${name}.py`, line: number | null = 1): Frame => ({
  function: name,
  file,
  line,
});
const LIBRARY = '/usr/lib/python3.11/json/decoder.py';

describe('frameOrigin', () => {
  it.each([
    ['/usr/lib/python3.11/asyncio/events.py', 'standard-library', null],
    ['/opt/py/lib64/python3.13/ssl.py', 'standard-library', null],
    ['<frozen importlib._bootstrap>', 'standard-library', null],
    ['node:internal/timers', 'standard-library', null],
    ['/opt/python311.zip/json/decoder.py', 'standard-library', null],
    ['/venv/lib/python3.11/site-packages/fastapi/routing.py', 'package', 'fastapi'],
    ['/venv/lib/python3.11/site-packages/six.py', 'package', 'six'],
    ['/usr/lib/python3/dist-packages/yaml/loader.py', 'package', 'yaml'],
    ['/srv/node_modules/express/lib/router/index.js', 'package', 'express'],
    ['/srv/node_modules/a/node_modules/@scope/b/x.js', 'package', '@scope/b'],
    ['/srv/app/server.py', 'application', null],
    ['<string>', 'application', null],
    ['', 'application', null],
  ])('%s is %s', (file, kind, module) => {
    expect(frameOrigin(file)).toEqual({ kind, module });
  });
});

describe('rankPlaces', () => {
  it('names the innermost frame outside the standard library, then its callers', () => {
    const frames = [frame('decode', LIBRARY), frame('parse'), frame('handler')];
    const places = rankPlaces([{ frames, weight: 1 }]);
    expect(places.map((place) => place.frame.function)).toEqual(['parse', 'handler']);
    expect(places[0]?.share).toBe(1);
  });

  it('passes over a function that holds less than half of the time', () => {
    const places = rankPlaces([
      { frames: [frame('a'), frame('handler')], weight: 0.4 },
      { frames: [frame('b'), frame('handler')], weight: 0.6 },
      { frames: [frame('c'), frame('handler')], weight: 0.3 },
    ]);
    expect(places.map((place) => place.frame.function)).toEqual(['handler']);
  });

  it('finds a function that moved through many lines, though no single stack holds much', () => {
    const stacks = Array.from({ length: 10 }, (_, line) => ({
      frames: [frame('work', '/app/work.py', line), frame('handler')],
      weight: 0.06,
    }));
    stacks.push({ frames: [frame('handler')], weight: 0.4 });
    expect(rankPlaces(stacks).map((place) => place.frame.function)).toEqual(['work', 'handler']);
  });

  it('counts a recursive function once a stack, at the line of its innermost call', () => {
    const frames = [frame('f', '/app/f.py', 3), frame('f', '/app/f.py', 9), frame('main')];
    const [place] = rankPlaces([{ frames, weight: 2 }]);
    expect(place).toMatchObject({ share: 1, frame: { function: 'f', line: 3 } });
  });

  it('falls back to the innermost library frame when the program has none', () => {
    const frames = [frame('decode', LIBRARY), frame('loads', LIBRARY)];
    expect(rankPlaces([{ frames, weight: 1 }]).map((place) => place.frame.function)).toEqual([
      'decode',
    ]);
  });

  it('says nothing of no stacks, and of stacks without weight', () => {
    expect(rankPlaces([])).toEqual([]);
    expect(rankPlaces([{ frames: [frame('a')], weight: 0 }])).toEqual([]);
  });
});
