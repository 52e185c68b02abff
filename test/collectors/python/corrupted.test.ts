import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { describe, expect, it } from 'vitest';
import { PythonObjects } from '../../../collectors/python/objects.ts';
import { openPython, PythonReader } from '../../../collectors/python/reader.ts';
import { ProcessMemory } from '../../../src/platform/memory.ts';
import { interpreters } from '../../environments.ts';
import { UntrustedMemory } from './untrusted-memory.ts';
import { rounds } from '../../rounds.ts';

/** A real process whose words come out wrong now and then: each byte of a wrong word has its top bit set. */
class CorruptedMemory extends UntrustedMemory {
  readonly #real: ProcessMemory;
  readonly #rate: number;

  constructor(real: ProcessMemory, rate: number) {
    super();
    this.#real = real;
    this.#rate = rate;
  }

  readInto(target: Buffer, address: number, length: number = target.length): void {
    this.#real.readInto(target, address, length);
    for (let word = 0; word < length; word += 8) {
      if (Math.random() >= this.#rate) continue;
      for (let at = word; at < Math.min(word + 8, length); at++)
        target[at] = 128 + Math.floor(Math.random() * 128);
    }
  }
}

describe.each(interpreters())(
  'a CPython $version of which some words are read wrong',
  ({ path }) => {
    it('gives only functions and files that exist', async () => {
      const program = `
import sys, threading, time
class Klass:
    def method(self, depth):
        return self.method(depth - 1) if depth else sorted([1], key=self.park)
    def park(self, _):
        time.sleep(1e6)
for _ in range(3): threading.Thread(target=Klass().method, args=(9,), daemon=True).start()
time.sleep(0.1)
print(flush=True)
sys.stdin.read()`;
      const child = spawn(path, ['-c', program], { stdio: ['pipe', 'pipe', 'ignore'] });
      await once(child.stdout, 'data');
      const pid = child.pid ?? 0;
      const opened = openPython(pid);
      if (!opened.ok) throw new Error(opened.reason);
      const { objects, version } = opened.reader;
      const names = (reader: PythonReader): string[] =>
        reader
          .threads()
          .flatMap(({ frames }) => frames.map((frame) => `${frame.function} ${frame.file}`));
      const real = new Set(names(opened.reader));
      expect(real.size).toBeGreaterThan(4);
      const memory = new ProcessMemory(pid);
      const seen = new Set<string>();
      const doubts = new Set<string>();
      for (const rate of [1e-4, 1e-3, 1e-2, 5e-2]) {
        for (let round = 0; round < rounds(100); round++) {
          const reader = new PythonReader(
            new PythonObjects(new CorruptedMemory(memory, rate), objects.table, objects.symbols),
            { pid, version, close: () => {} },
          );
          for (const name of names(reader)) seen.add(name);
          for (const [doubt, count] of Object.entries(reader.counters.rejected))
            if (count > 0) doubts.add(doubt);
        }
      }
      expect([...seen].filter((name) => !real.has(name))).toEqual([]);
      expect(seen).toEqual(real);
      expect(doubts.size).toBeGreaterThanOrEqual(2);
      memory.close();
      opened.reader.close();
      child.kill('SIGKILL');
    });
  },
);

describe.each(interpreters())('a CPython $version that ends while it is read', ({ path }) => {
  it('is reported as gone, never by an exception', async () => {
    const program = `
import threading
def work(n):
    return n if n < 2 else work(n - 1) + work(n - 2)
def forever():
    while True: work(12)
for _ in range(2): threading.Thread(target=forever, daemon=True).start()
print(flush=True)
forever()`;
    for (let round = 0; round < 3; round++) {
      const child = spawn(path, ['-c', program], { stdio: ['ignore', 'pipe', 'ignore'] });
      await once(child.stdout, 'data');
      const pid = child.pid ?? 0;
      const opened = openPython(pid);
      if (!opened.ok) throw new Error(opened.reason);
      const probe = opened.reader.turnProbe(pid);
      const read = (): void => {
        opened.reader.threads();
        opened.reader.stack(pid);
        opened.reader.loopThreads();
        probe.read();
      };
      for (let i = 0; i < round * 3; i++) read();
      child.kill('SIGKILL');
      // Without giving Node a chance to reap it: the process dies under the reader's hands.
      for (let i = 0; i < 50; i++) read();
      await once(child, 'exit');
      expect(opened.reader.threads()).toEqual([]);
      expect(opened.reader.stack(pid)).toMatchObject({ state: 'unreadable', frames: [] });
      opened.reader.close();
      expect(openPython(pid)).toMatchObject({ ok: false, code: 'gone' });
    }
  });
});
