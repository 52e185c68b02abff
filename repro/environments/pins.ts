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

/** The pins with one of them, of the same name, replaced; added when there is none. */
export function withPin(pins: readonly Pin[], pin: Pin): readonly Pin[] {
  return [...pins.filter(({ name }) => name !== pin.name), pin];
}

/** `redis==4.5.3, hiredis==2.0.0`. */
export function pinsText(pins: readonly Pin[]): string {
  return pins.map(({ name, version }) => `${name}==${version}`).join(', ');
}
