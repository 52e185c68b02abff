import { readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { locatePython } from '../../environments.ts';

/** A published bug, and how a user's own code comes upon it: a folder of test/published. */
export interface PublishedCase {
  readonly name: string;
  readonly folder: string;
  readonly class: 'race' | 'leak' | 'deadlock' | 'blocking';
  readonly issue: string;
  readonly language: 'python' | 'node';
  readonly python?: string;
  readonly packages: readonly string[];
  readonly control: string;
  readonly include?: readonly string[];
  readonly call: string;
  readonly setup?: string;
  readonly args?: readonly (readonly unknown[])[];
  readonly oracle: string;
  readonly attempts?: number;
  readonly concurrency?: number;
}

const CASES = join(import.meta.dirname, '..', '..', 'published');

/** All cases, or those that are named, in that order. */
export function publishedCases(names: readonly string[]): readonly PublishedCase[] {
  const all = readdirSync(CASES, { withFileTypes: true })
    .filter((entry) => entry.isDirectory())
    .map(({ name }) => name);
  return (names.length === 0 ? all : names).map((name) => {
    const folder = join(CASES, name);
    const text = readFileSync(join(folder, 'case.json'), 'utf8');
    return { ...(JSON.parse(text) as Omit<PublishedCase, 'name' | 'folder'>), name, folder };
  });
}

/** Flags of the verbs that run trials, for the release with the bug. */
export function buggyFlags({ packages, python }: PublishedCase): readonly string[] {
  return [
    ...packages.flatMap((pin) => ['--package', pin]),
    ...(python === undefined ? [] : ['--python', pathOf(python)]),
  ];
}

/** What `--control` is given. */
export function controlOf({ control }: PublishedCase): string {
  return control.startsWith('python=') ? `python=${pathOf(control.slice(7))}` : control;
}

/** The same flags for the fixed release. */
export function fixedFlags(one: PublishedCase): readonly string[] {
  const control = controlOf(one);
  if (control.startsWith('python='))
    return [...one.packages.flatMap((pin) => ['--package', pin]), '--python', control.slice(7)];
  const name = nameOf(control);
  const packages = one.packages.map((pin) => (nameOf(pin) === name ? control : pin));
  return buggyFlags({ ...one, packages });
}

const nameOf = (pin: string): string => pin.replace(/(?:==|(?<!^)@).*/, '');

function pathOf(version: string): string {
  const found = locatePython(version);
  if (found === null) throw new Error(`Python ${version} is wanted and not here`);
  return found.path;
}
