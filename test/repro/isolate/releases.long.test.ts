import { execFileSync } from 'node:child_process';
import { createHash } from 'node:crypto';
import { chmodSync, mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { createServer, type Server } from 'node:http';
import type { AddressInfo } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { parseReleases } from '../../../repro/environments/pins.ts';
import { releasesBetween } from '../../../repro/environments/releases.ts';
import { findBorder, type Judged } from '../../../repro/isolate/border.ts';
import { main } from '../../../src/cli.ts';
import { fakeEnvironment } from '../../commands/fake-environment.ts';

const LIMIT_MS = 180_000;
const NAME = 'planted-account';
/** A lost update, and what the account is without it. */
const RACY = `let total = 0;
export const read = () => total;
export async function add() { const seen = total; await null; total = seen + 1; }
`;
const FIXED = RACY.replace('const seen = total; await null; total = seen + 1;', 'total += 1;');
const BROKEN = 'throw new Error("it does not load");\n';
const RELEASES: Readonly<Record<string, string>> = {
  '1.0.0': FIXED,
  '1.1.0': FIXED,
  '1.2.0': BROKEN,
  '1.3.0': RACY,
  '1.10.0': RACY,
  '2.0.0': FIXED,
};

let folder = '';
let registry: Server;
const asked: string[] = [];
const tarballs = new Map<string, Buffer>();

beforeAll(async () => {
  folder = mkdtempSync(join(tmpdir(), 'trace-releases-'));
  for (const [version, text] of Object.entries(RELEASES)) {
    const inner = join(folder, version, 'package');
    mkdirSync(inner, { recursive: true });
    const manifest = { name: NAME, version, type: 'module', exports: './index.js' };
    writeFileSync(join(inner, 'package.json'), JSON.stringify(manifest));
    writeFileSync(join(inner, 'index.js'), text);
    const tar = ['-C', join(folder, version), '-czf', '-', 'package'];
    tarballs.set(version, execFileSync('tar', tar));
  }
  registry = createServer(({ url = '' }, response) => {
    asked.push(url);
    const tarball = tarballs.get(/-(\d[\d.]*)\.tgz$/.exec(url)?.[1] ?? '');
    if (tarball !== undefined) response.end(tarball);
    else if (url === `/${NAME}`) response.end(JSON.stringify(packument()));
    else response.writeHead(404).end('{}');
  });
  await new Promise<void>((done) => registry.listen(0, '127.0.0.1', done));
  process.env['npm_config_registry'] = addressOf(registry);
  writeFileSync(
    join(folder, 'account.mjs'),
    `import { add, read as total } from '${NAME}';\nexport { add };\nexport const read = () => total();\n`,
  );
});
afterAll(() => {
  delete process.env['npm_config_registry'];
  registry.closeAllConnections();
  registry.close();
  rmSync(folder, { recursive: true, force: true });
});

function addressOf(server: Server): string {
  const { port } = server.address() as AddressInfo;
  return `http://127.0.0.1:${port}`;
}

function packument(): object {
  const versions = Object.keys(RELEASES).map((version) => {
    const integrity = createHash('sha512').update(tarballs.get(version) ?? '');
    const tarball = `${addressOf(registry)}/${NAME}/-/${NAME}-${version}.tgz`;
    const dist = { tarball, integrity: `sha512-${integrity.digest('base64')}` };
    return [version, { name: NAME, version, dist }] as const;
  });
  return {
    name: NAME,
    'dist-tags': { latest: '2.0.0' },
    versions: Object.fromEntries(versions),
  };
}

async function trace(...argv: string[]) {
  const env = { HOME: folder, XDG_CACHE_HOME: join(folder, 'cache') };
  const environment = fakeEnvironment({ cwd: folder, env });
  const code = await main(argv, environment);
  return { code, out: environment.out(), err: environment.err() };
}

describe('releases of a package', { timeout: LIMIT_MS }, () => {
  it('are bisected to the one with which it came, past one that cannot run, and to where it went', async () => {
    const oracle = 'lost-update:read=./account.mjs#read';
    const pin = ['--package', `${NAME}@1.10.0`];
    const call = ['--call', './account.mjs#add', '--oracle', oracle, '--attempts', '8'];
    const made = await trace('repro', 'new', ...call, ...pin, '-o', 'lost');
    expect(made.code, made.err).toBe(0);
    const isolate = (range: string, ...more: string[]) =>
      trace('repro', 'isolate', 'lost', '--releases', `${NAME}@${range}`, '-n', '2', ...more);

    const plan = await isolate('1.0.0..1.10.0', '--plan');
    expect(plan.out).toContain('5 releases');

    const came = await isolate('1.0.0..1.10.0');
    expect(came.code, came.err).toBe(0);
    expect(came.out).toContain(`first release with it: ${NAME} 1.3.0; 1.1.0 is without it`);
    expect(came.out).toContain('Not tested: 1.2.0.');
    const written = readFileSync(join(folder, 'lost', 'isolation.json'), 'utf8');
    expect(JSON.parse(written)).toMatchObject({
      border: { before: '1.1.0', after: '1.3.0', change: 'comes' },
    });

    const went = await isolate('1.10.0..2.0.0', '--quiet');
    expect(went).toMatchObject({ code: 0, err: '' });
    expect(went.out).toContain(`first release without it: ${NAME} 2.0.0; 1.10.0 has it`);
    // What is kept is not asked for again.
    const before = asked.length;
    expect((await isolate('1.10.0..2.0.0')).code).toBe(0);
    expect(asked).toHaveLength(before);

    const alike = await isolate('1.3.0..1.10.0');
    expect(alike).toMatchObject({ code: 6 });
    expect(alike.out).toContain('do not differ: both have it');
    const unknown = await isolate('1.0.0..3.0.0');
    expect(unknown).toMatchObject({ code: 3, out: '' });
    expect(unknown.err).toContain('names no 3.0.0');
    const both = await isolate('1.0.0..2.0.0', '--commits', 'a..b');
    expect(both).toMatchObject({ code: 2 });
  });

  it.each([
    'redis',
    'redis==1.0',
    'redis==1.0..',
    'redis==1.0..1.0',
    'redis==1..--pre',
    '-r==1..2',
  ])('are not taken from %s', (text) => {
    expect(() => parseReleases(text, '--releases')).toThrow('--releases takes');
  });

  it('that a registry makes up are not believed', async () => {
    const python = join(folder, 'python');
    const range = { name: 'made-up', from: '1.0', to: '2.0' };
    const answer = (line: string) => {
      writeFileSync(python, `#!/bin/sh\necho '${line}'\n`);
      chmodSync(python, 0o755);
      const env = { XDG_CACHE_HOME: join(folder, 'other') };
      return releasesBetween({ language: 'python', range, python, env });
    };
    await expect(answer('Available versions: 2.0, --index-url=x, 1.0')).rejects.toThrow(
      'not known',
    );
    await expect(answer('')).rejects.toThrow('not known');
    await expect(answer('Available versions: 1.0, 2.0')).rejects.toThrow('is newer than');
    expect(await answer('Available versions: 3.0, 2.0, 1.5, 1.0, 0.9')).toEqual([
      '1.0',
      '1.5',
      '2.0',
    ]);
  });
});

describe('a border', () => {
  const find = (states: readonly Judged[]) =>
    findBorder(states.length, async (place) => states[place] ?? null);
  const row = (text: string): readonly Judged[] =>
    text.split('').map((one) => (one === 'g' ? 'good' : one === 'b' ? 'bad' : 'skip'));

  it.each([
    ['gb', { before: 0, after: 1, change: 'comes' }],
    ['gggggb', { before: 4, after: 5, change: 'comes' }],
    ['bbbgggg', { before: 2, after: 3, change: 'goes' }],
    ['ggssbb', { before: 1, after: 4, change: 'comes' }],
    ['gg', null],
    ['bb', null],
    ['sb', null],
    ['gs', null],
  ] as const)('in %s is %j', async (states, border) => {
    expect(await find(row(states))).toEqual(border);
  });

  it('is found in a thousand with few asked', async () => {
    let count = 0;
    const border = await findBorder(1000, async (place) => {
      count++;
      return place < 700 ? 'good' : 'bad';
    });
    expect(border).toEqual({ before: 699, after: 700, change: 'comes' });
    expect(count).toBeLessThan(14);
  });
});
