import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { describe, expect, it } from 'vitest';
import { LOCK_LAYOUTS } from '../collectors/python/locks/lock-layout.ts';
import { OFFSET_TABLES } from '../collectors/python/offset-tables.ts';
import { everyVerb } from '../src/commands/registry.ts';
import { pages, type Page } from './docs.ts';

const ROOT = join(import.meta.dirname, '..');
/** What was measured or decided once, of the versions of that day. */
const OF_A_DAY = /^docs\/(?:decisions\/|benchmarks\.md|measurements\.md|bugbench\.md)|^CHANGELOG/;
const current = pages(ROOT).filter(({ path }) => !OF_A_DAY.test(path));

interface Stated {
  readonly path: string;
  readonly line: string;
}

const linesOf = ({ path, text }: Page): Stated[] =>
  text.split('\n').map((line) => ({ path, line }));

/** From the oldest to the newest, as `3.8 to 3.14`. */
function range(minors: readonly number[]): string {
  return `3.${Math.min(...minors)} to 3.${Math.max(...minors)}`;
}

const readable = range(OFFSET_TABLES.map(({ minor }) => minor));
const withLocks = range(Object.keys(LOCK_LAYOUTS).map(Number));
const OF_LOCKS = /^`?TRC10[56]/;

/** The ranges of CPython that a line states, and which one the code has for what the line is about. */
function wrongRanges({ path, line }: Stated): string[] {
  const right = OF_LOCKS.test(line) ? withLocks : readable;
  return [...line.matchAll(/CPython 3\.(\d+) ?(?:–|-|to) ?3\.(\d+)/g)]
    .map(([, from, to]) => `3.${from} to 3.${to}`)
    .filter((stated) => stated !== right)
    .map((stated) => `${path}: CPython ${stated}, and it is ${right}`);
}

/** Supported versions that a line counts among what is not read. */
function wronglyExcluded({ path, line }: Stated): string[] {
  const excluded = /other Pythons \(([^)]*)\)|Tasks of Python ([^;]*);/.exec(line);
  if (excluded === null) return [];
  const text = (excluded[1] ?? excluded[2] ?? '').replaceAll(/before 3\.\d+/g, '');
  return OFFSET_TABLES.filter(({ minor }) => new RegExp(`3\\.${minor}(?!\\d)`).test(text)).map(
    ({ minor }) => `${path}: 3.${minor} is read`,
  );
}

describe('versions of CPython', () => {
  it('that the pages state are those that are read', () => {
    const lines = current.flatMap(linesOf);
    expect(
      lines.filter(({ line }) => /CPython 3\.\d+ ?(?:–|-|to)/.test(line)).length,
    ).toBeGreaterThan(5);
    expect(lines.flatMap(wrongRanges)).toEqual([]);
    expect(lines.flatMap(wronglyExcluded)).toEqual([]);
  });

  it('that the help states are those that are read', async () => {
    for (const { words, verb } of everyVerb()) {
      const { help } = await verb.usage();
      expect(linesOf({ path: words.join(' '), text: help }).flatMap(wrongRanges)).toEqual([]);
    }
  });

  it('that a message states are those that are read', () => {
    const path = 'src/commands/attach/probe.ts';
    const text = readFileSync(join(ROOT, path), 'utf8');
    expect(linesOf({ path, text }).flatMap(wrongRanges)).toEqual([]);
  });

  it('are noticed when they contradict each other', () => {
    const path = 'docs/attach.md';
    expect(wrongRanges({ path, line: '| CPython 3.8–3.13, uvloop |' })).toHaveLength(1);
    expect(wronglyExcluded({ path, line: '| other Pythons (PyPy, 3.14, …) |' })).toHaveLength(1);
    expect(wronglyExcluded({ path, line: '| other Pythons (PyPy) |' })).toEqual([]);
  });
});

interface Manifest {
  readonly engines?: { readonly node?: string };
  readonly dependencies?: Readonly<Record<string, string>>;
}

const manifestOf = (folder: string): Manifest =>
  JSON.parse(readFileSync(join(ROOT, folder, 'package.json'), 'utf8')) as Manifest;

/** Packages that trace needs when it runs, and those that they need. */
function runtimePackages(names: readonly string[], found = new Set<string>()): Set<string> {
  for (const name of names) {
    if (found.has(name)) continue;
    found.add(name);
    runtimePackages(Object.keys(manifestOf(`node_modules/${name}`).dependencies ?? {}), found);
  }
  return found;
}

const numbersOf = (version: string): number[] => {
  const [major = 0, minor = 0, patch = 0] = version.split('.').map(Number);
  return [major, minor, patch];
};

/** Whether one version comes before another. */
function isBefore(one: readonly number[], other: readonly number[]): boolean {
  const at = one.findIndex((part, index) => part !== other[index]);
  return at !== -1 && (one[at] ?? 0) < (other[at] ?? 0);
}

/** Whether a range of `>=`, `^`, `||` and spaces allows a version; any other form is an error. */
function allows(wanted: string, version: string): boolean {
  const given = numbersOf(version);
  return wanted.split('||').some((alternative) =>
    [...alternative.replaceAll(/(>=|\^) +/g, '$1').matchAll(/\S+/g)].every(([part]) => {
      const [, sign, least = ''] = /^(>=|\^|)([\d.]+)(?:\.[x*])?$/.exec(part) ?? [];
      if (sign === undefined) throw new Error(`a range of another form: ${wanted}`);
      const from = numbersOf(least);
      return !isBefore(given, from) && (sign === '>=' || given[0] === from[0]);
    }),
  );
}

describe('the oldest Node', () => {
  const { engines, dependencies = {} } = manifestOf('.');
  const floor = engines?.node?.replace(/^>=/, '') ?? '';

  it('that package.json names is one that every package runs on', () => {
    expect(engines?.node).toBe(`>=${floor}`);
    const refusing = [...runtimePackages(Object.keys(dependencies))].filter((name) => {
      const wanted = manifestOf(`node_modules/${name}`).engines?.node;
      return wanted !== undefined && !allows(wanted, floor);
    });
    expect(refusing).toEqual([]);
  });

  it('is the one that the pages state', () => {
    const stated = current
      .flatMap(linesOf)
      .flatMap(({ path, line }) =>
        [...line.matchAll(/Node (\d+\.\d+\.\d+)/g)]
          .filter(() => /or later|and later|floor/.test(line))
          .map(([, version]) => ({ path, version })),
      );
    expect(stated.map(({ path }) => path)).toEqual(
      expect.arrayContaining(['README.md', 'CONTRIBUTING.md', 'docs/architecture.md']),
    );
    expect(stated.filter(({ version }) => version !== floor)).toEqual([]);
  });

  it('is told from older ones in every form of range', () => {
    expect(allows('^20.19.0 || >=22.12.0', '20.18.1')).toBe(false);
    expect(allows('^20.19.0 || >=22.12.0', '20.19.0')).toBe(true);
    expect(allows('^20.19.0 || >=22.12.0', '21.0.0')).toBe(false);
    expect(allows('>= 16.0.0', '20.19.0')).toBe(true);
    expect(() => allows('<20', '20.19.0')).toThrow('another form');
  });
});
