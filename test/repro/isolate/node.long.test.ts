import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { main } from '../../../src/cli.ts';
import { fakeEnvironment } from '../../commands/fake-environment.ts';

/** A lost update in each of three forms: an export of an ES module, a method of a class, an export of a CommonJS module. */
const FILES: Readonly<Record<string, string>> = {
  'bank.mjs': `
import { pause } from './pause.mjs';
import shelf from './shelf.cjs';
const state = { balance: 0 };
export async function add() {
  const before = state.balance;
  await pause();
  state.balance = before + 1;
}
export class Box {
  async put() {
    return add();
  }
}
export default () => 'the default is still there';
export const total = () => state.balance + shelf.total();
`,
  'pause.mjs': `
import { setTimeout } from 'node:timers/promises';
export const pause = () => setTimeout(2);
`,
  'shelf.cjs': `
let count = 0;
exports.lay = async () => {
  const before = count;
  await new Promise((done) => setTimeout(done, 2));
  count = before + 1;
};
exports.total = () => count;
`,
  'calls.mjs': `
import name, { add, Box, total } from './bank.mjs';
import { lay } from './shelf.cjs';
if (name() !== 'the default is still there') throw new Error('no default');
export const deposit = () => add();
export const boxed = () => new Box().put();
export const shelve = () => lay();
export { total };
`,
};

let folder: string;

async function trace(...argv: string[]) {
  const environment = fakeEnvironment({ cwd: folder });
  const code = await main(argv, environment);
  return { code, out: environment.out().replaceAll(/\s+/g, ' '), err: environment.err() };
}

beforeAll(async () => {
  folder = mkdtempSync(join(tmpdir(), 'trace-isolate-node-'));
  for (const [name, text] of Object.entries(FILES)) writeFileSync(join(folder, name), text);
  const size = ['--attempts', '6', '--concurrency', '3', '--oracle'];
  for (const name of ['deposit', 'boxed', 'shelve']) {
    const oracle = 'lost-update:read=./calls.mjs#total';
    // oxlint-disable-next-line no-await-in-loop -- one after another
    const made = await trace(
      'repro',
      'new',
      '--call',
      `./calls.mjs#${name}`,
      ...size,
      oracle,
      '-o',
      name,
    );
    expect(made.code, made.err).toBe(0);
  }
});

afterAll(() => rmSync(folder, { recursive: true, force: true }));

const isolate = (name: string, ...argv: string[]) =>
  trace('repro', 'isolate', name, '--runs', '4', ...argv);

describe('trace repro isolate of a reproduction in Node', () => {
  it.each([
    ['deposit', './bank.mjs#add'],
    ['boxed', './bank.mjs#Box.put'],
    ['shelve', './shelf.cjs#lay'],
  ])('calls one at a time what %s calls', async (name, target) => {
    const { code, out, err } = await isolate(name, '--serialize', target);
    expect({ code, err }).toEqual({ code: 0, err: '' });
    expect(out).toMatch(/as given 4 \/ 4/);
    expect(out).toMatch(/called one at a time it is gone: calls of it disturb each other/);
  });

  it('leaves it as it is where another function is serialised', async () => {
    const { out } = await isolate('deposit', '--serialize', './shelf.cjs#lay');
    expect(out).toMatch(/No difference was seen for serialize .*lay = one at a time/);
  });

  it('answers at once in place of a function', async () => {
    const { code, out } = await isolate('shelve', '--mock', './shelf.cjs#lay=1');
    // All updates are lost then: it goes on happening, and that it ran is what is seen.
    expect(code).toBe(0);
    expect(out).toMatch(/No difference was seen for mock/);
    const path = join(folder, 'shelve', 'isolation.json');
    const { rows } = JSON.parse(readFileSync(path, 'utf8')) as {
      rows: { tally: { reproduced: number; invalid: number } }[];
    };
    expect(rows[1]?.tally).toMatchObject({ reproduced: 4, invalid: 0 });
    const paused = await isolate('deposit', '--mock', './pause.mjs#pause');
    expect(paused.out).toMatch(/pause instant/);
  });

  it('calls a function that is not there invalid, and never gone', async () => {
    const { out } = await isolate('deposit', '--serialize', './bank.mjs#missing');
    expect(out).toMatch(
      /could not run: .*bank.mjs#missing was not found in what the script imported/,
    );
  });

  it.each([['bank:add'], ['./bank.mjs'], ['#add']])('refuses %s', async (target) => {
    const { code, err } = await isolate('deposit', '--serialize', target);
    expect(code).toBe(2);
    expect(err).toContain('./file.mjs#export');
  });
});
