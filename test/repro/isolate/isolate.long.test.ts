import { execFileSync } from 'node:child_process';
import { createServer, type AddressInfo, connect } from 'node:net';
import { once } from 'node:events';
import { mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { compare, conclusions, holm } from '../../../repro/isolate/conclude.ts';
import { type Fault, openFaultyLink } from '../../../repro/isolate/faulty-link.ts';
import type { Setting } from '../../../repro/isolate/setting.ts';
import { main } from '../../../src/cli.ts';
import { fakeEnvironment } from '../../commands/fake-environment.ts';
import { interpreters } from '../../environments.ts';

const python = interpreters()[0]?.path ?? 'python3';

/** A race that each trial shows: eight threads read, wait, and write. `calm` is one way around it, by a variable. */
const APP = `
import os
import threading
import time

balance = 0
lock = threading.Lock()
done = 0

def pause():
    time.sleep(0.002)
    return 1

def deposit():
    global balance
    if os.environ.get("CALM") == "on":
        with lock:
            add()
    else:
        add()

def add():
    global balance
    before = balance
    balance = before + pause()

def check():
    global done
    deposit()
    with lock:
        done += 1
        if done == 16 and balance != 16:
            raise AssertionError(f"balance {balance} after 16 deposits")
`;
const FIXED = APP.replace('if os.environ.get("CALM") == "on":', 'if True:');

let folder: string;

function reproduction(name: string, app: string): string {
  const directory = join(folder, name);
  mkdirSync(directory, { recursive: true });
  writeFileSync(join(directory, 'app.py'), app);
  return directory;
}

async function trace(cwd: string, ...argv: string[]) {
  const environment = fakeEnvironment({ cwd });
  const code = await main(argv, environment);
  return { code, out: environment.out(), err: environment.err() };
}

const isolate = (...argv: string[]) =>
  trace(folder, 'repro', 'isolate', ...argv, '--python', python);

/** Writes the reproduction of `app:check` that stands in `cwd`. */
async function writeCheck(cwd: string, name: string): Promise<void> {
  const flags = ['--python', python, '--attempts', '16', '--concurrency', '8'];
  const argv = ['repro', 'new', '--call', 'app:check', ...flags, '-o', join(folder, name)];
  const written = await trace(cwd, ...argv);
  expect(written.code, written.err).toBe(0);
}

beforeAll(async () => {
  folder = mkdtempSync(join(tmpdir(), 'trace-isolate-test-'));
  const app = reproduction('app', APP);
  await writeCheck(app, 'lost');
});

afterAll(() => rmSync(folder, { recursive: true, force: true }));

describe('trace repro isolate', () => {
  it('says that it takes two at a time, that a lock ends it, and which variable does', async () => {
    const { code, out, err } = await isolate(
      'lost',
      '--runs',
      '8',
      '--concurrency',
      '1',
      '--serialize',
      'app:deposit',
      '--mock',
      'app:pause=1',
      '--flag',
      'CALM=off,on',
      '--flag',
      'COLOUR=red,blue',
    );
    expect({ code, err }).toEqual({ code: 0, err: '' });
    const rows = (
      JSON.parse(readFileSync(join(folder, 'lost', 'isolation.json'), 'utf8')) as {
        rows: { factor: string; value: string; effect: string | null }[];
      }
    ).rows;
    const effect = (factor: string) => rows.find((row) => row.factor === factor)?.effect;
    expect(effect('as given')).toBeNull();
    expect(effect('concurrency')).toBe('gone');
    expect(effect('serialize app:deposit')).toBe('gone');
    expect(effect('flag CALM')).toBe('gone');
    expect(effect('flag COLOUR')).toBe('none-seen');
    const text = out.replaceAll(/\s+/g, ' ');
    expect(text).toContain('it takes two at a time');
    expect(text).toContain('calls of it disturb each other');
    expect(text).toContain('With CALM=on it is gone');
  });

  it('finds the fewest flags that end it together where none does alone', async () => {
    const app = APP.replace(
      'os.environ.get("CALM") == "on"',
      'os.environ.get("CALM") == os.environ.get("SLOW") == "on"',
    );
    await writeCheck(reproduction('together', app), 'pair');
    const flags = ['CALM=off,on', 'COLOUR=red,blue', 'SLOW=off,on', 'SIZE=1,2'];
    const argv = ['--runs', '6', ...flags.flatMap((flag) => ['--flag', flag])];
    const planned = await isolate('pair', ...argv, '--plan');
    expect(planned.out).toContain('at most 54 trials more');
    const { code, out } = await isolate('pair', ...argv);
    expect(code).toBe(0);
    const text = out.replaceAll(/\s+/g, ' ');
    expect(text).toContain('With CALM=on SLOW=on it is gone: it takes them together');
    expect(text).toContain('No difference was seen for flag CALM = on');
  });

  it('looks for no set of flags where one alone ends it', async () => {
    const flags = ['--flag', 'CALM=off,on', '--flag', 'COLOUR=red,blue'];
    const { out } = await isolate('lost', '--runs', '6', ...flags);
    const text = out.replaceAll(/\s+/g, ' ');
    expect(text).toContain('With CALM=on it is gone.');
    expect(text).not.toContain('together, none');
    expect(text.match(/flags together/g)).toHaveLength(1);
  });

  it('prints the plan, and runs no more than one trial', async () => {
    const { code, out } = await isolate('lost', '--plan', '--runs', '50');
    expect(code).toBe(0);
    for (const step of ['as given', 'concurrency = 1', 'concurrency = 4'])
      expect(out).toContain(step);
    expect(out).toContain('200 in all');
  });

  it('calls a function that is not there invalid, and never gone', async () => {
    const { out } = await isolate('lost', '--runs', '2', '--serialize', 'app:missing');
    expect(out.replaceAll(/\s+/g, ' ')).toMatch(
      /app:missing = one at a time could not run: .*was not found/,
    );
  });

  it('says that nothing follows from what never happened', async () => {
    const fixed = reproduction('calm', FIXED);
    await writeCheck(fixed, 'none');
    const { code, out } = await isolate('none', '--runs', '2', '--concurrency', '1');
    expect(code).toBe(6);
    expect(out).toContain('It never happened as given');
  });

  it.each([
    [['--serialize', 'deposit'], '--serialize'],
    [['--flag', 'CALM=on'], '--flag'],
    [['--mock', 'app:pause={'], '--mock'],
    [['--upstream', 'http://127.0.0.1:1'], 'VARIABLE'],
    [['--commits', '-x..y'], '--commits'],
  ])('refuses %j', async (argv, named) => {
    const { code, err } = await isolate('lost', ...argv);
    expect(code).toBe(2);
    expect(err).toContain(named);
  });

  it('finds the commit that brought it, and leaves the repository as it was', async () => {
    const repository = join(folder, 'repository');
    mkdirSync(repository);
    const git = (...args: string[]) =>
      execFileSync(
        'git',
        ['-C', repository, '-c', 'user.name=a', '-c', 'user.email=a@example.org', ...args],
        { encoding: 'utf8' },
      ).trim();
    git('init', '--quiet', '--initial-branch', 'main');
    const commit = (text: string, message: string): string => {
      writeFileSync(join(repository, 'app.py'), text);
      git('add', '.');
      git('commit', '--quiet', '--no-gpg-sign', '-m', message);
      return git('rev-parse', 'HEAD');
    };
    const good = commit(FIXED, 'locked');
    for (const i of [1, 2, 3]) commit(`${FIXED}# ${i}\n`, `still locked ${i}`);
    const first = commit(`${APP}# unlocked\n`, 'no lock any more');
    commit(`${APP}# later\n`, 'later');
    await writeCheck(repository, 'history');
    const range = `${good}..main`;
    const found = await isolate(
      'history',
      '--commits',
      range,
      '--repository',
      repository,
      '--runs',
      '3',
    );
    expect(found.code, found.err).toBe(0);
    expect(found.out).toContain(first.slice(0, 12));
    expect(found.out).toContain('no lock any more');
    expect(git('worktree', 'list').split('\n')).toHaveLength(1);
    expect(git('status', '--porcelain')).toBe('');
    expect(git('rev-parse', '--abbrev-ref', 'HEAD')).toBe('main');
  });
});

describe('the comparison of rates', () => {
  const setting = (factor: string): Setting => ({
    factor,
    value: factor === 'as given' ? '' : 'x',
    parameters: {} as Setting['parameters'],
    environment: {},
  });
  const trials = (reproduced: number, n: number, invalid = 0) =>
    Array.from({ length: n + invalid }, (_, i) => ({
      seed: i,
      outcome:
        i >= n
          ? ('invalid' as const)
          : i < reproduced
            ? ('reproduced' as const)
            : ('not-reproduced' as const),
      errors: 0,
      attempts: 1,
      seconds: 1,
      reason: i >= n ? 'no module' : null,
      outputTail: '',
      left: [],
    }));
  const of = (...rows: readonly (readonly [string, ReturnType<typeof trials>])[]) =>
    compare(
      rows.map(([factor, some]) => ({ arm: setting(factor), trials: some })),
      false,
    ).map(({ effect }) => effect);

  it('tells gone, rarer, more frequent, and nothing', () => {
    expect(
      of(
        ['as given', trials(10, 20)],
        ['a', trials(0, 20)],
        ['b', trials(20, 20)],
        ['c', trials(9, 20)],
        ['d', trials(0, 0, 20)],
      ),
    ).toEqual([null, 'gone', 'more', 'none-seen', 'invalid']);
    expect(of(['as given', trials(20, 20)], ['a', trials(6, 20)])).toEqual([null, 'less']);
    expect(of(['as given', trials(0, 20)], ['a', trials(0, 20)])).toEqual([null, 'no-base']);
  });

  it('corrects for how many were compared', () => {
    expect(holm([0.01, 0.04, 0.03])).toEqual([0.03, 0.06, 0.06]);
    // 6 of 20 against none is p = 0.02: gone alone, not told among ten.
    const many = Array.from({ length: 10 }, (_, i) => [`f${i}`, trials(0, 20)] as const);
    expect(of(['as given', trials(6, 20)], ['a', trials(0, 20)])[1]).toBe('gone');
    expect(of(['as given', trials(6, 20)], ...many)[1]).toBe('none-seen');
  });

  it('says nothing where nothing ran', () => {
    expect(
      conclusions(compare([{ arm: setting('as given'), trials: trials(0, 0, 3) }], false)),
    ).toEqual(['No trial could run as given: nothing follows.']);
  });
});

describe('a faulty link', () => {
  /** What 40 clients get through it of an answer of 8,000 bytes. */
  async function through(fault: Fault): Promise<readonly string[]> {
    const server = createServer((socket) => {
      socket.on('error', () => {});
      socket.once('data', () => socket.end(Buffer.alloc(8000, 'x')));
    });
    server.listen(0, '127.0.0.1');
    await once(server, 'listening');
    const { port } = server.address() as AddressInfo;
    const link = await openFaultyLink({ host: '127.0.0.1', port }, fault, 7);
    const ends: string[] = [];
    for (let i = 0; i < 40; i++) {
      ends.push(
        await new Promise<string>((done) => {
          const client = connect(link.port, '127.0.0.1', () => client.write('?'));
          let length = 0;
          client.on('data', (part) => (length += part.length));
          client.on('error', () => done('broken'));
          client.on('end', () => done(length === 8000 ? 'whole' : 'broken'));
        }),
      );
    }
    await link.close();
    server.close();
    return ends;
  }

  it('passes everything on where it is straight, or only slow', async () => {
    expect(new Set(await through('straight'))).toEqual(new Set(['whole']));
    expect(new Set(await through('delayed'))).toEqual(new Set(['whole']));
  });

  it('breaks some connections off, and the same ones again', async () => {
    for (const fault of ['reset', 'truncated'] as const) {
      const ends = await through(fault);
      expect(new Set(ends)).toEqual(new Set(['whole', 'broken']));
      expect(await through(fault)).toEqual(ends);
    }
  });
});
