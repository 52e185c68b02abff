/** Credentials do not get into a recording, also where content is captured. */

/** What stands in the place of a credential. */
export const MASK = '***';

/** Shorter ones are words that stand elsewhere as well. */
const SECRET_AT_LEAST = 8;

/** Names of headers, query parameters and JSON members whose value is a credential, or may be one. */
const SECRET_NAME =
  /auth|token$|secret|passw|cookie|credential|signature|session|api[-_]?key|access[-_]?key|^key$|^sig$/i;
/** Beginnings that providers give their keys, and the form of a JSON web token. */
const SECRET_TEXT =
  /\b(?:sk|pk|rk)-[\w-]{8,}|\b(?:hf|ghp|gho|ghs|glpat|xox[abp])[_-][\w-]{10,}|\bAKIA[A-Z0-9]{16}\b|\bBearer\s+[\w.~+/-]{8,}=*|\beyJ[\w-]{8,}\.[\w-]{8,}\.[\w-]*/g;
const SECRET_MEMBER =
  /("[\w-]*(?:passw(?:or)?d|secret|api[-_]?key|access[-_]?token|refresh[-_]?token|id[-_]?token|authorization|credentials?)"\s*:\s*)"(?:[^"\\]|\\.)*"/gi;

export type HeaderPairs = readonly (readonly [name: string, value: string])[];

/** Headers whose credentials are replaced by {@link MASK}. */
export function maskedHeaders(headers: HeaderPairs): HeaderPairs {
  return headers.map(([name, value]) => [
    name,
    SECRET_NAME.test(name) ? MASK : value.replace(SECRET_TEXT, MASK),
  ]);
}

/** The credentials that headers carry, to be found again where they are echoed. */
export function secretsIn(headers: HeaderPairs): readonly string[] {
  return headers
    .filter(([name]) => SECRET_NAME.test(name))
    .flatMap(([, value]) => [value, ...value.split(/[\s;,=]+/)])
    .map((one) => one.trim())
    .filter((one) => one.length >= SECRET_AT_LEAST)
    .toSorted((a, b) => b.length - a.length);
}

/** Text without credentials: known forms of keys, members of JSON with a telling name, and those given. */
export function maskedText(text: string, secrets: readonly string[]): string {
  const masked = text.replace(SECRET_TEXT, MASK).replace(SECRET_MEMBER, `$1"${MASK}"`);
  return secrets.reduce((left, secret) => left.replaceAll(secret, MASK), masked);
}

/** A path with its query: values of telling names are masked; without `values` all are left out. */
export function maskedTarget(target: string, { values }: { readonly values: boolean }): string {
  const at = target.indexOf('?');
  if (at === -1) return target.replace(SECRET_TEXT, MASK);
  const parts = target
    .slice(at + 1)
    .split('&')
    .map((part) => {
      const [name = '', ...rest] = part.split('=');
      if (rest.length === 0 || !values) return name;
      return `${name}=${SECRET_NAME.test(name) ? MASK : rest.join('=').replace(SECRET_TEXT, MASK)}`;
    });
  return `${target.slice(0, at).replace(SECRET_TEXT, MASK)}?${parts.join('&')}`;
}
