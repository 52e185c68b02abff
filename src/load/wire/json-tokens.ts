/** Strings and numbers of a JSON text, and whether bytes are one. The bytes are UTF-8. */

const QUOTE = 34;
const BACKSLASH = 92;
const MINUS = 45;
const PLUS = 43;
const DOT = 46;
const ZERO = 48;
const NINE = 57;
const LOWER_U = 117;
const COUNT_DIGITS = 15;

/** What may follow a backslash, but for `u`. */
const ESCAPES = new Set(Buffer.from('"\\/bfnrt'));

export interface Token {
  readonly kind: 'string' | 'number';
  /** Of a string: between the quotes. */
  readonly start: number;
  readonly end: number;
}

/** Every string (keys too) and number in bytes that are known to be JSON; null when there are more than `limit`. */
export function tokensOf(bytes: Buffer, start: number, end: number, limit: number): Token[] | null {
  const tokens: Token[] = [];
  for (let i = start; i < end; i++) {
    const c = bytes[i] ?? 0;
    let token: Token | null = null;
    if (c === QUOTE) token = { kind: 'string', start: i + 1, end: endOfString(bytes, i + 1, end) };
    else if (c === MINUS || (c >= ZERO && c <= NINE)) {
      token = { kind: 'number', start: i, end: endOfNumber(bytes, i, end) };
    }
    if (token === null) continue;
    if (token.end < 0 || tokens.length === limit) return null;
    tokens.push(token);
    i = token.kind === 'string' ? token.end : token.end - 1;
  }
  return tokens;
}

/** Index of the quote that ends a string whose inside begins at `start`; −1 when it has none before `end` or is not JSON. */
export function endOfString(bytes: Buffer, start: number, end: number): number {
  let i = start;
  while (i < end) {
    const c = bytes[i] ?? 0;
    if (c === QUOTE) return i;
    if (c < 32) return -1;
    if (c === BACKSLASH) {
      const escaped = i + 1 < end ? (bytes[i + 1] ?? 0) : 0;
      if (ESCAPES.has(escaped)) i += 2;
      else if (escaped === LOWER_U && areHex(bytes, i + 2, end)) i += 6;
      else return -1;
    } else i++;
  }
  return -1;
}

function areHex(bytes: Buffer, start: number, end: number): boolean {
  if (start + 4 > end) return false;
  for (let i = start; i < start + 4; i++) {
    const c = bytes[i] ?? 0;
    const lower = c | 32;
    if (!((c >= ZERO && c <= NINE) || (lower >= 97 && lower <= 102))) return false;
  }
  return true;
}

/** Index after a number that begins at `start`; −1 when none does. It may end at `end`. */
export function endOfNumber(bytes: Buffer, start: number, end: number): number {
  let i = start;
  if (i < end && bytes[i] === MINUS) i++;
  if (i < end && bytes[i] === ZERO) i++;
  else {
    const digits = endOfDigits(bytes, i, end);
    if (digits === i) return -1;
    i = digits;
  }
  if (i < end && bytes[i] === DOT) {
    const digits = endOfDigits(bytes, i + 1, end);
    if (digits === i + 1) return -1;
    i = digits;
  }
  if (i < end && ((bytes[i] ?? 0) | 32) === 101) {
    let exponent = i + 1;
    if (exponent < end && (bytes[exponent] === PLUS || bytes[exponent] === MINUS)) exponent++;
    const digits = endOfDigits(bytes, exponent, end);
    if (digits === exponent) return -1;
    i = digits;
  }
  return i;
}

/** The same of a count: no sign, no fraction, and small enough to be exact. */
export function endOfCount(bytes: Buffer, start: number, end: number): number {
  if (start < end && bytes[start] === ZERO) return start + 1;
  const digits = endOfDigits(bytes, start, end);
  return digits === start || digits - start > COUNT_DIGITS ? -1 : digits;
}

function endOfDigits(bytes: Buffer, start: number, end: number): number {
  let i = start;
  while (i < end) {
    const c = bytes[i] ?? 0;
    if (c < ZERO || c > NINE) break;
    i++;
  }
  return i;
}
