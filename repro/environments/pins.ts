import { usageError } from '../../src/core/errors.ts';
import { printable } from '../../src/core/text.ts';

/** A package at one version. */
export interface Pin {
  readonly name: string;
  readonly version: string;
}

/** Names of PyPI (with extras) and npm (with a scope), and what versions are made of: nothing that an installer takes for an option or a path. */
const PIN = /^((?:@[a-z0-9][\w.-]*\/)?[A-Za-z0-9][\w.-]*(?:\[[\w,-]+\])?)(?:==|@)([0-9][\w.+!-]*)$/;

/** `redis==4.5.3` or `ws@8.0.0`. Throws a usage error. */
export function parsePin(text: string, flag: string): Pin {
  const [, name, version] = PIN.exec(text) ?? [];
  if (name === undefined || version === undefined)
    throw usageError(
      `${flag} takes a package at a version such as redis==4.5.3, got '${printable(text, 60)}'`,
    );
  return { name, version };
}

/** Releases of one package, from one to another. */
export interface ReleaseRange {
  readonly name: string;
  readonly from: string;
  readonly to: string;
}

/** `redis==4.5.1..4.5.5`. Throws a usage error. */
export function parseReleases(text: string, flag: string): ReleaseRange {
  const at = text.indexOf('..');
  const from = at === -1 ? null : PIN.exec(text.slice(0, at));
  const to = VERSION.exec(text.slice(at + '..'.length));
  if (from === null || to === null || from[2] === to[0])
    throw usageError(
      `${flag} takes a package from one release to another such as redis==4.5.1..4.5.5, got '${printable(text, 60)}'`,
    );
  return { name: from[1] ?? '', from: from[2] ?? '', to: to[0] };
}

/** What versions are made of. */
export const VERSION: RegExp = /^[0-9][\w.+!-]*$/;

/** The pins with one of them, of the same name, replaced; added when there is none. */
export function withPin(pins: readonly Pin[], pin: Pin): readonly Pin[] {
  return [...pins.filter(({ name }) => name !== pin.name), pin];
}

/** `redis==4.5.3, hiredis==2.0.0`. */
export function pinsText(pins: readonly Pin[]): string {
  return pins.map(({ name, version }) => `${name}==${version}`).join(', ');
}
