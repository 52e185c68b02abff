import { existsSync, readdirSync, readFileSync } from 'node:fs';
import { basename, join, resolve } from 'node:path';

/* Published bugs: a folder each, with case.json and a driver (test/cases/README.md says what stands in them). */

/** The two releases of a case. */
export const SIDES = ['buggy', 'fixed'] as const;
export type Side = (typeof SIDES)[number];

/** What installs and runs one release. */
export type Recipe =
  | { readonly kind: 'python'; readonly version: string; readonly packages: readonly string[] }
  | {
      readonly kind: 'node';
      readonly packages: readonly string[];
      /** Node's own, such as `--expose-gc`. */
      readonly flags: readonly string[];
    };

/** A bug of a released package, with the driver that shows it and what has to be said of it. */
export interface BugCase {
  readonly id: string;
  readonly package: string;
  readonly issue: string;
  /** `leak`, `blocking`, `deadlock`, `race`. */
  readonly class: string;
  readonly driver: string;
  readonly versions: Readonly<Record<Side, string>>;
  readonly recipes: Readonly<Record<Side, Recipe>>;
  /** The finding kinds that count. */
  readonly kinds: readonly string[];
  /** At least one stands in the place of the finding. */
  readonly words: readonly string[];
  /** Flags of attach without which this bug cannot be seen. */
  readonly flags: readonly string[];
  /** Why it is known not to be found yet; null where it has to be. */
  readonly missed: string | null;
}

interface CaseFile {
  readonly id: string;
  readonly class: string;
  readonly ecosystem: string;
  readonly runtime: string;
  readonly package: string;
  readonly buggy: string;
  readonly fixed: string;
  readonly issue_url: string;
  readonly install: readonly string[];
  readonly run: string;
  readonly accept: { readonly kinds: readonly string[]; readonly where_any: readonly string[] };
  readonly flags?: readonly string[];
  readonly missed?: string;
}

/** Every case of a folder, or those that are named, in the order of their names. */
export function readCases(folder: string, names: readonly string[] = []): BugCase[] {
  const found = readdirSync(folder)
    .filter((name) => existsSync(join(folder, name, 'case.json')))
    .filter((name) => names.length === 0 || names.includes(name))
    .toSorted();
  return found.map((name) => readCase(join(folder, name)));
}

function readCase(folder: string): BugCase {
  const file = JSON.parse(readFileSync(join(folder, 'case.json'), 'utf8')) as CaseFile;
  if (file.id !== basename(folder))
    throw new Error(`${folder}: case.json calls itself ${String(file.id)}`);
  const { kinds, where_any: words } = file.accept;
  if (kinds.length === 0 || words.length === 0)
    throw new Error(`${file.id}: nothing would be accepted`);
  const driver = ['driver.py', 'driver.mjs']
    .map((name) => join(resolve(folder), name))
    .find(existsSync);
  if (driver === undefined) throw new Error(`${file.id} has no driver`);
  const { buggy, fixed } = file;
  return {
    id: file.id,
    package: file.package,
    issue: file.issue_url,
    class: file.class,
    driver,
    versions: { buggy, fixed },
    recipes: { buggy: recipeOf(file, 'buggy'), fixed: recipeOf(file, 'fixed') },
    kinds,
    words,
    flags: file.flags ?? [],
    missed: file.missed ?? null,
  };
}

function recipeOf(file: CaseFile, side: Side): Recipe {
  const line = file.install[side === 'buggy' ? 0 : 1] ?? file.install[0] ?? '';
  const [, packages] = /^(?:pip install|npm i(?:nstall)?) (.+)$/.exec(line) ?? [];
  const words = packages === undefined ? [] : shellWords(packages);
  if (file.ecosystem === 'node') {
    const [, flags = ''] = /^node ((?:--\S+ )*)/.exec(file.run) ?? [];
    return { kind: 'node', packages: words, flags: flags.split(' ').filter((one) => one !== '') };
  }
  // A bug of Python itself: the releases of the package are those of the interpreter.
  const version =
    packages === undefined
      ? file[side]
      : (/python (\d+\.\d+(?:\.\d+)?)/.exec(file.runtime)?.[1] ?? '');
  if (version === '') throw new Error(`${file.id}: which Python? ${file.runtime}`);
  return { kind: 'python', version, packages: words };
}

/** Spaces separate, quotes keep together. */
function shellWords(text: string): string[] {
  return [...text.matchAll(/'([^']*)'|"([^"]*)"|(\S+)/g)].map(
    ([, single, double, bare]) => single ?? double ?? bare ?? '',
  );
}
