/**
 * What parsing a text of JSON would cost, told without parsing it. Ten megabytes of brackets within
 * brackets make `JSON.parse` take more than a gigabyte: a parser remembers each level until it
 * ends.
 */

/** A stack of V8's heap profiler is the deepest thing that is read: 128 calls, two levels each. */
const DEPTH_LIMIT = 1000;
/** Objects and arrays, 50 to 100 bytes each once parsed. A batch of 8192 readings has 200,000. */
const COUNT_LIMIT = 1_000_000;
/** Text that cannot be dear, whatever it holds: 64 KiB of brackets take some 10 MB. */
const SHORT = 64 * 1024;

const QUOTE = 0x22;
const BACKSLASH = 0x5c;
const OPEN_BRACKET = 0x5b;
const CLOSE_BRACKET = 0x5d;
const OPEN_BRACE = 0x7b;
const CLOSE_BRACE = 0x7d;

/**
 * Whether a text of JSON, in UTF-8, is nested deeper, or holds more, than anything that is read
 * here. 1 ms a megabyte.
 */
export function isOverNested(json: Uint8Array): boolean {
  if (json.length <= SHORT) return false;
  let depth = 0;
  let count = 0;
  for (let at = 0; at < json.length; at++) {
    const byte = json[at];
    if (byte === QUOTE) at = endOfString(json, at);
    else if (byte === OPEN_BRACKET || byte === OPEN_BRACE) {
      depth++;
      count++;
      if (depth > DEPTH_LIMIT || count > COUNT_LIMIT) return true;
    } else if (byte === CLOSE_BRACKET || byte === CLOSE_BRACE) depth--;
  }
  return false;
}

/** Where the quote stands that ends a string, the end of the text where there is none. */
function endOfString(json: Uint8Array, start: number): number {
  let end = json.indexOf(QUOTE, start + 1);
  while (end >= 0 && isEscaped(json, end, start)) end = json.indexOf(QUOTE, end + 1);
  return end < 0 ? json.length : end;
}

/** An odd number of backslashes stands before it. */
function isEscaped(json: Uint8Array, at: number, start: number): boolean {
  let before = at - 1;
  while (before > start && json[before] === BACKSLASH) before--;
  return (at - 1 - before) % 2 === 1;
}
