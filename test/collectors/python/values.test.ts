import { join } from 'node:path';
import { afterEach, describe, expect, it } from 'vitest';
import { PythonAttributes } from '../../../collectors/python/attributes.ts';
import { PythonObjects } from '../../../collectors/python/objects.ts';
import { openPython } from '../../../collectors/python/reader.ts';
import { PythonValues } from '../../../collectors/python/values.ts';
import { ProcessMemory, WALKING } from '../../../src/platform/memory.ts';
import { interpreters } from '../../environments.ts';
import { type Running, startReady } from '../../targets/harness.ts';

const PROGRAM = join(import.meta.dirname, '../../fixtures/python-values/values.py');
const open: { close(): void }[] = [];
const running: Running[] = [];

afterEach(async () => {
  for (const one of open.splice(0)) one.close();
  for (const target of running.splice(0)) await target.stop();
});

function reader(pid: number): PythonAttributes {
  const opened = openPython(pid);
  if (!opened.ok) throw new Error(opened.reason);
  const memory = new ProcessMemory(pid, WALKING);
  open.push(opened.reader, memory);
  const { table, symbols } = opened.reader.objects;
  return new PythonAttributes(new PythonValues(new PythonObjects(memory, table, symbols)));
}

describe.each(interpreters())('values of CPython $version', ({ path, version }) => {
  it('are what the program says they are', async () => {
    const target = await startReady(path, [PROGRAM]);
    running.push(target);
    await expect.poll(() => target.lines.length, { timeout: 30_000 }).toBe(2);
    const truth = JSON.parse(target.lines[1] ?? '') as Record<string, unknown>;
    const attributes = reader(target.pid);
    const { values } = attributes;
    const { objects } = values;
    const global = (name: string): number => attributes.global('__main__', name) ?? 0;
    const textsOf = (keys: Iterable<number>): string[] => [...keys].map((at) => objects.text(at));

    expect([...values.items(global('ints'))].map((at) => values.int(at))).toEqual(truth['ints']);
    expect(textsOf([...values.items(global('texts'))].slice(1))).toEqual(truth['texts']);
    expect(values.size(global('big'))).toBe(truth['big']);
    const big = [...values.entries(global('big'))];
    expect(big.length).toBe(truth['big']);
    expect(
      big.every(([key, value], i) => objects.text(key) === `key-${i}` && values.int(value) === i),
    ).toBe(true);
    const numbers = [...values.entries(global('numbers'))];
    expect(numbers.every(([key, value]) => values.int(key) ** 2 === values.int(value))).toBe(true);
    expect(numbers.length).toBe(truth['numbers']);
    const holes = [...values.entries(global('holes'))].map(([k, v]) => [
      objects.text(k),
      values.int(v),
    ]);
    expect(Object.fromEntries(holes)).toEqual(truth['holes']);
    expect(textsOf(values.elements(global('some'))).toSorted()).toEqual(truth['some']);
    const [one = 0, two = 0] = values.items(global('pair'));
    expect([values.int(one), objects.text(two)]).toEqual([1, 'two']);

    const plain = global('plain');
    expect(values.typeOf(plain).name).toBe('Plain');
    expect(objects.text(attributes.get(plain, 'name') ?? 0)).toBe('plain-1');
    const names = [...attributes.of(plain)].map(([name]) => name);
    // 3.14 has keys that objects share in an order of its own.
    expect(version.startsWith('3.14') ? names.toSorted().toReversed() : names).toEqual([
      'name',
      'n',
    ]);
    expect([...attributes.of(global('late'))].length).toBe(truth['late']);
    expect([...attributes.of(global('asked'))].map(([name]) => name).toSorted()).toEqual(
      truth['asked'],
    );
    expect(attributes.get(plain, 'nothing')).toBeNull();
    expect(attributes.moduleDict('no.such.module')).toBeNull();
    expect(attributes.global('sys', 'maxsize')).not.toBeNull();
  });

  it('are doubted where they are not what they should be', async () => {
    const target = await startReady(path, [PROGRAM]);
    running.push(target);
    const attributes = reader(target.pid);
    const { values } = attributes;
    const ints = attributes.global('__main__', 'ints') ?? 0;
    const plain = attributes.global('__main__', 'plain') ?? 0;
    expect(() => values.int(ints)).toThrow('unsound');
    expect(() => [...values.entries(ints)]).toThrow('unsound');
    expect(() => [...values.elements(plain)]).toThrow('unsound');
    expect(() => [...values.items(plain)]).toThrow('unsound');
    expect(() => values.typeOf(ints + 8)).toThrow();
    expect(() => values.typeOf(1)).toThrow('unsound');
  });
});
