import { describe, expect, it } from 'vitest';
import { type Listener, reported, runHeard, type Surroundings } from './set-up-progress.ts';

const SET_UP = { what: 'a slow server', cost: '6 GB' };
const FOLDERS = { kept: '/cache/slow', making: '/cache/slow.tmp' };

/** A clock that a test moves, a folder that it fills. */
class Bench implements Surroundings {
  readonly lines: string[] = [];
  size: number | null = 0;
  /** Whether a measurement never ends. */
  isStuck = false;
  #now = 0;
  readonly #calls = new Set<{
    readonly call: () => void;
    readonly interval: number;
    next: number;
  }>();

  now(): number {
    return this.#now;
  }
  every(interval: number, call: () => void): () => void {
    const entry = { call, next: this.#now + interval, interval };
    this.#calls.add(entry);
    return () => this.#calls.delete(entry);
  }
  get timers(): number {
    return this.#calls.size;
  }
  megabytes(): Promise<number | null> {
    return this.isStuck ? new Promise(() => {}) : Promise.resolve(this.size);
  }
  say(line: string): void {
    this.lines.push(line);
  }
  /** Second by second, with time for what each sets off. */
  async pass(seconds: number): Promise<void> {
    for (let i = 0; i < seconds; i++) {
      this.#now += 1;
      for (const entry of this.#calls) {
        if (this.#now < entry.next) continue;
        entry.next += entry.interval;
        entry.call();
      }
      await new Promise((resolve) => setImmediate(resolve));
    }
  }
}

/** An install that ends when it is told to. */
function install() {
  let resolve: (folder: string) => void = () => {};
  let reject: (error: Error) => void = () => {};
  const promise = new Promise<string>((...both) => ([resolve, reject] = both));
  let heard: Listener = () => {};
  return {
    work: (listen: Listener): Promise<string> => {
      heard = listen;
      return promise;
    },
    says: (text: string) => heard(text),
    resolve,
    reject,
  };
}

describe('a long set-up', () => {
  it('says what it does, how far it is at least every 15 s, and how long it took', async () => {
    const bench = new Bench();
    const { work, says, resolve } = install();
    const done = reported(SET_UP, FOLDERS, work, bench);
    expect(bench.lines).toEqual([
      'set-up: a slow server: begins (6 GB); made once, kept in /cache/slow',
    ]);
    await bench.pass(12);
    expect(bench.lines.slice(1)).toEqual(['set-up: a slow server: 10 s, 0 MB so far']);
    says('Collecting one\nDownloading one.whl\n');
    says('\n');
    bench.size = 120;
    await bench.pass(18);
    expect(bench.lines.slice(2)).toEqual([
      'set-up: a slow server: 20 s, 120 MB so far, Downloading one.whl',
      'set-up: a slow server: 30 s, 120 MB so far, Downloading one.whl',
    ]);
    bench.size = 6_310;
    resolve('/cache/slow');
    expect(await done).toBe('/cache/slow');
    expect(bench.lines.slice(4)).toEqual(['set-up: a slow server: done in 30 s, 6310 MB']);
    expect(bench.timers).toBe(0);
  });

  it('says that it failed, and fails', async () => {
    const bench = new Bench();
    const { work, reject } = install();
    const done = reported(SET_UP, FOLDERS, work, bench);
    await bench.pass(4);
    reject(new Error('no such package'));
    await expect(done).rejects.toThrow('no such package');
    expect(bench.lines.slice(1)).toEqual(['set-up: a slow server: failed after 4 s']);
    expect(bench.timers).toBe(0);
  });

  it('does not wait for a measurement that takes long', async () => {
    const bench = new Bench();
    const { work, resolve } = install();
    const done = reported(SET_UP, FOLDERS, work, bench);
    bench.isStuck = true;
    await bench.pass(35);
    expect(bench.lines.slice(1)).toEqual([
      'set-up: a slow server: 10 s',
      'set-up: a slow server: 20 s',
      'set-up: a slow server: 30 s',
    ]);
    bench.isStuck = false;
    resolve('');
    await done;
  });

  it('goes on where its folder cannot be measured, and where it has none', async () => {
    const bench = new Bench();
    bench.size = null;
    const first = install();
    const one = reported(SET_UP, FOLDERS, first.work, bench);
    await bench.pass(10);
    first.resolve('');
    await one;
    const second = install();
    const two = reported({ what: 'a start', cost: 'a minute' }, null, second.work, bench);
    second.says('\u001b[1mloading\u0001\u001b[0m\n\u001b[0m');
    await bench.pass(10);
    second.resolve('');
    await two;
    expect(bench.lines.slice(1)).toEqual([
      'set-up: a slow server: 10 s',
      'set-up: a slow server: done in 10 s',
      'set-up: a start: begins (a minute)',
      String.raw`set-up: a start: 10 s, loading\x01`,
      'set-up: a start: done in 10 s',
    ]);
  });
});

describe('runHeard', () => {
  it('hears both streams of a program, and throws what it said when it fails', async () => {
    let heard = '';
    const listen: Listener = (said) => void (heard += said);
    await runHeard('sh', ['-c', 'echo out; echo err >&2'], { listen });
    expect(heard.split('\n').toSorted()).toEqual(['', 'err', 'out']);
    const failing = runHeard('sh', ['-c', 'echo why >&2; exit 3'], { listen });
    await expect(failing).rejects.toThrow('why');
  });
});
