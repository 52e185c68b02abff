import { execFileSync } from 'node:child_process';
import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { describe, expect, it } from 'vitest';
import { type PythonPlace, placesWhere, pythonPlaces } from '../../../collectors/python/places.ts';
import { interpreters, pythonEnvironment } from '../../environments.ts';

const LIBRARY: PythonPlace = { kind: 'standard-library' };
const APPLICATION: PythonPlace = { kind: 'application' };
const of = (module: string): PythonPlace => ({ kind: 'package', module });

describe('whose code a file is', () => {
  it.each<[string, PythonPlace]>([
    ['/usr/lib/python3.11/asyncio/base_events.py', LIBRARY],
    ['/root/.pyenv/versions/3.8.18/lib/python3.8/threading.py', LIBRARY],
    ['/usr/lib64/python3.9/selectors.py', LIBRARY],
    ['/usr/lib/python311.zip/asyncio/events.py', LIBRARY],
    ['<frozen importlib._bootstrap>', LIBRARY],
    ['<frozen runpy>', LIBRARY],
    ['/srv/venv/lib/python3.11/site-packages/uvicorn/server.py', of('uvicorn')],
    ['/srv/venv/lib/python3.11/site-packages/six.py', of('six')],
    ['/usr/lib/python3/dist-packages/yaml/loader.py', of('yaml')],
    ['/usr/local/lib/python3.11/dist-packages/torch/nn/modules/module.py', of('torch')],
    ['/opt/app/lib/python3.8/site-packages/Foo_Bar-1.0-py3.8.egg/foo/bar.py', of('Foo_Bar')],
    ['/srv/app/main.py', APPLICATION],
    ['/usr/lib/python3/app/main.py', APPLICATION],
    ['main.py', APPLICATION],
    ['<string>', APPLICATION],
    ['<frozen no, not really>', APPLICATION],
    ['', APPLICATION],
  ])('%s', (file, place) => {
    expect(placesWhere(() => true)(file)).toEqual(place);
  });

  it('is the application’s where a folder is only named like a library', () => {
    const places = placesWhere((folder) => folder === '/usr/lib/python3.11');
    expect(places('/usr/lib/python3.11/json/decoder.py')).toEqual(LIBRARY);
    expect(places('/home/me/lib/python3.11/service.py')).toEqual(APPLICATION);
  });

  it('asks about a folder once', () => {
    const asked: string[] = [];
    const places = placesWhere((folder) => {
      asked.push(folder);
      return true;
    });
    places('/usr/lib/python3.11/a.py');
    places('/usr/lib/python3.11/b.py');
    expect(asked).toEqual(['/usr/lib/python3.11']);
  });
});

describe.each(interpreters())('whose code a file of CPython $version is', ({ path }) => {
  it('is told by the folders of the process that runs it', async () => {
    const { python } = await pythonEnvironment(['h11'], path);
    const program =
      'import asyncio.events, h11, json.decoder, os; print(*[m.__file__ for m in (asyncio.events, json.decoder, os, h11)])';
    const [events, decoder, os, package_] = execFileSync(python, ['-c', program], {
      encoding: 'utf8',
    })
      .trim()
      .split(' ');
    const places = pythonPlaces(process.pid);
    for (const file of [events, decoder, os]) expect(places(file ?? '')).toEqual(LIBRARY);
    expect(places(package_ ?? '')).toEqual(of('h11'));
  });

  it('is the application’s for a service that lies in a folder named like a library', () => {
    const folder = mkdtempSync(join(tmpdir(), 'tracewright-places-'));
    try {
      const library = join(folder, 'lib', 'python3.11');
      mkdirSync(library, { recursive: true });
      writeFileSync(join(library, 'service.py'), '');
      expect(pythonPlaces(process.pid)(join(library, 'service.py'))).toEqual(APPLICATION);
    } finally {
      rmSync(folder, { recursive: true, force: true });
    }
  });
});
