import type { Strength } from './names.ts';

/**
 * Which values are none, whatever their name says: switches, paths, counts, and what stands for a
 * value.
 */

/** What decides about a value is at its beginning. */
export const LOOKED_AT = 256;

const NO_VALUE = new Set(
  (
    'true false yes no on off none null nil undefined required optional enabled disabled ' +
    'missing invalid empty unset set ok failed expired redacted hidden masked secure str ' +
    'string bytes int bool .. ... … -'
  ).split(' '),
);
/** `<key>`, `[secure]`, `{key}`, `$KEY`, `${{ secrets.KEY }}`, `%KEY%`, `$(cat key)`. */
const STANDS_FOR_IT = new RegExp(
  [
    '^(?:<[A-Za-z_ |-]{0,60}>',
    '\\[[A-Za-z_ -]{0,60}\\]',
    '\\{[A-Za-z_. ]{0,60}\\}',
    '\\{\\{[^{}]{0,80}\\}\\}',
    '\\$\\{\\{[^{}]{0,80}\\}\\}',
    '\\$\\{?[A-Z_][A-Z0-9_]{0,60}\\}?',
    '%[A-Z_]{1,60}%',
    '\\$\\([^()]{0,80}\\)',
    '[xX]{3,}',
    '\\*+)$',
  ].join('|'),
);
const PATH = /^(?:\.{0,2}|~)\/[\w.@+-]+(?:\/[\w.@+-]+)*\/?$/;
const FILE = /^[\w.-]{1,100}\.(?:pem|key|crt|cer|json|ya?ml|toml|txt|env|p12|pfx|jks|conf|ini)$/i;
const UUID = /^[\da-f]{8}(?:-[\da-f]{4}){3}-[\da-f]{12}$/i;

/** Where a value stands. */
export interface ValuePlace {
  readonly strength: Strength;
  /** Behind an option. */
  readonly isFlag?: boolean;
  /** In a sentence, in which an ordinary word may follow. */
  readonly isLoose?: boolean;
}

/**
 * Whether a value is a credential where its name says that it could be. At most {@link LOOKED_AT}
 * characters are looked at.
 */
export function isCredential(value: string, place: ValuePlace): boolean {
  const { strength, isFlag = false, isLoose = false } = place;
  const text = value.slice(0, LOOKED_AT);
  if (text.trim() === '' || NO_VALUE.has(text.toLowerCase()) || STANDS_FOR_IT.test(text))
    return false;
  if (strength === 'certain') return true;
  if (isPath(text) || !/[A-Za-z\d]/.test(text)) return false;
  if (strength === 'likely')
    return !(isFlag ? /^\d{1,2}$/ : /^[\d.]{1,6}$/).test(text) && !(isLoose && isPlainWord(text));
  if (isFlag) return !isPlainWord(text) && !/^[\d.,:-]+$/.test(text);
  return isDrawn(text) || isPair(text);
}

/** A path of ordinary names: one that begins with a slash may also be a key in Base64. */
function isPath(text: string): boolean {
  if (FILE.test(text)) return true;
  return PATH.test(text) && text.split('/').every((part) => part.length < 12 || !isDrawn(part));
}

function isPlainWord(text: string): boolean {
  return /^[A-Za-z]?[a-z_.-]{1,40}$/.test(text);
}

/**
 * Whether text looks as if it had been drawn by lot: letters of both cases with digits, or many
 * with digits.
 */
export function isDrawn(text: string): boolean {
  if (text.length < 8 || !/^[\w+/=.~-]+$/.test(text) || UUID.test(text)) return false;
  if (!/\d/.test(text) || !/[A-Za-z]/.test(text)) return false;
  return (/[a-z]/.test(text) && /[A-Z]/.test(text)) || /^[\w+/=]{20,}$/.test(text);
}

/** Whether text is `user:password` in Base64, as `Basic` and Docker's configuration have it. */
export function isPair(text: string): boolean {
  if (!/^[A-Za-z\d+/]{6,}={0,2}$/.test(text)) return false;
  try {
    return /^[\x20-\x7e]*:[\x20-\x7e]+$/.test(atob(text));
  } catch {
    return false;
  }
}
