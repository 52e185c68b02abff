import { MASK } from './mark.ts';
import type { ValueReader } from './value-reader.ts';
import { isCredential } from './values.ts';

/** The value of `Authorization`: a scheme, which stays, and what it proves itself with. */

const SCHEMES = new Set(
  (
    'basic bearer digest token negotiate ntlm apikey api-key key hmac hawk oauth ' +
    'aws4-hmac-sha256 aws signature sharedaccesssignature sharedkey sharedkeylite googlelogin ' +
    'dpop mutual scram-sha-256 vapid jwt'
  ).split(' '),
);
/** Those whose value is a list: `username="…", response="…"`. */
const LISTS = /^(?:digest|hawk|oauth|hmac|aws4-hmac-sha256|signature|vapid|scram-sha-256)$/;
const SCHEME = /([A-Za-z][\w-]{1,30})(?:[ \t]{1,8}|%20|\+)(?=\S)/y;
const ITEM = /[\w-]{1,64}=(?:\\{0,8}"[^"\n]{0,2048}"|[^\s,"'`]{0,2048})/y;
const COMMA = /,[ \t]{0,4}/y;
const COOKIES = /[^\s"'`;]+(?:;[ \t]{0,4}[^\s"'`;]+)*/y;

/** The value of such a header without its credential; null where none is in it. */
export function maskedHeaderValue(value: string, header: string): string | null {
  const text = value.trimEnd();
  if (header === 'cookie') return isCredential(text, { strength: 'certain' }) ? MASK : null;
  SCHEME.lastIndex = 0;
  const found = SCHEME.exec(text);
  const [head = '', name = ''] = found ?? [];
  const isKnown = SCHEMES.has(name.toLowerCase());
  const isScheme = isKnown || (/^[A-Z][A-Za-z-]{1,20}$/.test(name) && /\s$/.test(head));
  if (found !== null && isScheme)
    return isCredential(text.slice(head.length), { strength: 'certain' }) ? head + MASK : null;
  if (SCHEMES.has(text.trim().toLowerCase())) return null;
  return isCredential(text, { strength: 'certain' }) ? MASK : null;
}

/**
 * Where the value of such a header ends in a text that does not say so, with other words behind it.
 */
export function schemeEnd(
  text: string,
  at: number,
  { header, reader }: { readonly header: string; readonly reader: ValueReader },
): number {
  if (header === 'cookie') return endOf(COOKIES, text, at) ?? at;
  SCHEME.lastIndex = at;
  const found = SCHEME.exec(text);
  const behind = SCHEME.lastIndex;
  const name = found?.[1]?.toLowerCase() ?? '';
  const word = (from: number): number =>
    reader.read(from, { ending: 'word', sign: ' ', most: Infinity }).to;
  if (SCHEMES.has(name)) return (LISTS.test(name) ? listEnd(text, behind) : null) ?? word(behind);
  // A scheme that is not known, and all that is left of the line.
  const second = found === null ? at : word(behind);
  return found !== null && /^(?:["'`\n]|$)/.test(text.slice(second, second + 1))
    ? second
    : word(at);
}

/** Behind `name=value, name=value`; null where none begins. */
function listEnd(text: string, from: number): number | null {
  let end: number | null = null;
  for (let at: number | null = from; at !== null;) {
    const item: number | null = endOf(ITEM, text, at);
    if (item === null) break;
    end = item;
    at = endOf(COMMA, text, item);
  }
  return end;
}

function endOf(pattern: RegExp, text: string, at: number): number | null {
  pattern.lastIndex = at;
  return pattern.exec(text) === null ? null : pattern.lastIndex;
}
