import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { readCases } from './cases.ts';

const FILE = {
  id: 'a-case',
  class: 'leak',
  ecosystem: 'python',
  runtime: 'python 3.11',
  package: 'pool',
  buggy: '1.0',
  fixed: '1.1',
  issue_url: 'https://example.org/1',
  install: ["pip install pool==1.0 'helper<2'", "pip install pool==1.1 'helper<2'"],
  run: 'python driver.py 10',
  accept: { kinds: ['memory-leak'], where_any: ['pool'] },
};

describe('a folder of cases', () => {
  let folder: string;
  beforeEach(() => {
    folder = mkdtempSync(join(tmpdir(), 'cases-'));
  });
  afterEach(() => rmSync(folder, { recursive: true, force: true }));

  const write = (over: Partial<typeof FILE> = {}, driver = 'driver.py'): void => {
    const file = { ...FILE, ...over };
    mkdirSync(join(folder, file.id));
    writeFileSync(join(folder, file.id, 'case.json'), JSON.stringify(file));
    writeFileSync(join(folder, file.id, driver), '');
  };

  it('gives each release its packages and interpreter', () => {
    write();
    const [read] = readCases(folder);
    expect(read?.recipes).toEqual({
      buggy: { kind: 'python', version: '3.11', packages: ['pool==1.0', 'helper<2'] },
      fixed: { kind: 'python', version: '3.11', packages: ['pool==1.1', 'helper<2'] },
    });
    expect(read?.driver).toBe(join(folder, 'a-case', 'driver.py'));
  });

  it('gives a bug of Python itself two interpreters and no packages', () => {
    const install = ['python 3.12.1 (buggy), python 3.13.0 (fixed); no packages'];
    write({ install, buggy: '3.12.1', fixed: '3.13.0', runtime: 'python 3.12.1 / 3.13.0' });
    expect(readCases(folder)[0]?.recipes).toEqual({
      buggy: { kind: 'python', version: '3.12.1', packages: [] },
      fixed: { kind: 'python', version: '3.13.0', packages: [] },
    });
  });

  it('gives Node its own flags', () => {
    const install = ['npm i ws@1 express@4', 'npm i ws@2 express@4'];
    const run = 'node --expose-gc driver.mjs 10';
    write({ install, run, ecosystem: 'node', runtime: 'node 20' }, 'driver.mjs');
    expect(readCases(folder)[0]?.recipes.fixed).toEqual({
      kind: 'node',
      packages: ['ws@2', 'express@4'],
      flags: ['--expose-gc'],
    });
  });

  it('is read in part when cases are named', () => {
    write();
    write({ id: 'b-case' });
    expect(readCases(folder, ['b-case']).map(({ id }) => id)).toEqual(['b-case']);
  });

  it('is refused where nothing would be accepted or nothing can be run', () => {
    write({ accept: { kinds: ['memory-leak'], where_any: [] } });
    expect(() => readCases(folder)).toThrow('nothing would be accepted');
    rmSync(join(folder, 'a-case'), { recursive: true });
    write({}, 'other.py');
    expect(() => readCases(folder)).toThrow('no driver');
  });
});
