import { MASK } from './mark.ts';
import { maskText } from './mask.ts';
import { isNeverKept } from './names.ts';

/** Credentials in what passes over HTTP: headers, targets, bodies. */

export type HeaderPairs = readonly (readonly [name: string, value: string])[];

/** Shorter ones are words that stand elsewhere as well. */
const SECRET_AT_LEAST = 8;
/** A client has a few; each is looked for in the whole of a body. */
const SECRETS_AT_MOST = 200;

/**
 * Headers whose credentials are replaced: by their name all of the value, else what looks like one.
 */
export function maskHeaders(headers: HeaderPairs): HeaderPairs {
  return headers.map(([name, value]) => [name, isNeverKept(name) ? MASK : maskText(value)]);
}

/**
 * The credentials that headers carry, to be found again where they are echoed; the longest first.
 */
export function secretsIn(headers: HeaderPairs): readonly string[] {
  const pieces = headers
    .filter(([name]) => isNeverKept(name))
    .flatMap(([, value]) => [value, ...value.split(/[\s;,=]+/)])
    .map((one) => one.trim())
    .filter((one) => one.length >= SECRET_AT_LEAST);
  return [...new Set(pieces)].toSorted((a, b) => b.length - a.length).slice(0, SECRETS_AT_MOST);
}

/** Text without credentials, and without those that are given. */
export function maskEchoes(text: string, secrets: readonly string[]): string {
  return maskText(secrets.reduce((left, secret) => left.replaceAll(secret, MASK), text));
}

/** A path with its query: values of telling names are masked; without `values` all are left out. */
export function maskTarget(target: string, { values }: { readonly values: boolean }): string {
  const at = target.indexOf('?');
  if (at === -1) return maskText(target);
  const parts = target
    .slice(at + 1)
    .split('&')
    .map((part) => {
      const [name = '', ...rest] = part.split('=');
      if (rest.length === 0 || !values) return maskText(name);
      return `${name}=${isNeverKept(name) ? MASK : maskText(rest.join('='))}`;
    });
  return `${maskText(target.slice(0, at))}?${parts.join('&')}`;
}

/** Named values (attributes, settings) with the credentials among them replaced. */
export function maskAttributes<T>(attributes: Readonly<Record<string, T>>): Record<string, T> {
  return Object.fromEntries(
    Object.entries(attributes).map(([name, value]) => [name, maskedAttribute(name, value)]),
  );
}

function maskedAttribute<T>(name: string, value: T): T {
  if (typeof value !== 'string') return value;
  // The name says what the value is: it is looked at with it.
  const head = `${name}=`;
  return maskText(head + value).slice(head.length) as T;
}
