import { MASK } from './mark.ts';
import { type Header, headerOf, HEADERS, type Name, nameAt } from './name-reader.ts';
import { type Strength, strengthOf } from './names.ts';
import { maskedHeaderValue, schemeEnd } from './schemes.ts';
import { type Value, type ValueEnd, ValueReader } from './value-reader.ts';
import { isCredential, LOOKED_AT } from './values.ts';

/**
 * Names and their values in text: options, assignments, parameters, headers, members of JSON, YAML
 * and Python, at any depth of quoting. It goes over the text once; what it looks ahead is bounded,
 * so that hostile text takes no longer than other.
 */

const NAME = /[A-Za-z_][\w.-]*/g;
/** Most names are told to be none of ours by this alone. */
const HINT = new RegExp(
  'pass|pw|secret|cred|key|token|auth|cookie|sig|jwt|bearer|sid|sess|otp|pat|csrf|xsrf|code|' +
    'assert|saml|name|value',
  'i',
);
const CLOSING = /(?:\\{0,16}["'`]|%22|%27|&quot;|&#39;)?(?:\]|%5D)?/iy;
const SIGN = /[ \t]{0,8}(=>|:=|[!=]==?|=|:(?!:|\/\/)|%3D|%3A)[ \t]{0,8}/iy;
/** Between an option and its value: space, `', '` in a list, the next line of a YAML list. */
const OPTION_GAP = new RegExp(
  [
    `["'\`]?[ \\t]{0,8}\\r?\\n[ \\t]{0,64}-[ \\t]{1,8}`,
    `\\\\{0,16}["'\`][ \\t]{1,32}`,
    '(?:[ \\t]|\\\\\\r?\\n){1,32}',
    `\\\\{0,16}["'\`],?[ \\t\\r\\n]{0,32}(?=\\\\{0,16}["'\`])`,
  ].join('|'),
  'y',
);
/** `("name", "value")`. */
const TUPLE_GAP = /\\{0,16}["'`][ \t]{0,4},[ \t]{0,4}(?=[bfru]?\\{0,16}["'`])/y;
const SPACE = /[ \t]{1,8}/y;
/** A block of YAML: the value is on the next line. */
const BLOCK = /[|>][-+]?[ \t]{0,8}\r?\n[ \t]{0,64}/y;
/** What follows an option or a colon in a sentence. */
const SENTENCE = new Set(
  (
    'and or is are was were for from in on of to the a an with without take takes need needs ' +
    'must may can cannot contradict if when where as at by that this which but not instead ' +
    'beside together say says give gives has have want wants ask asks it hold holds stand ' +
    'stands set use also only than then there what who your its'
  ).split(' '),
);
const BARE_LIMIT = 512;
/** Behind a `name` whose value is a telling name, in which the `value` follows. */
const NAMED_WITHIN = 200;

/** How a value is joined to its name. */
interface Link {
  readonly at: number;
  readonly sign: string;
  /** Whether the quote that stands before the name is closed behind it. */
  readonly isClosed: boolean;
}

/**
 * The text with values of telling names replaced. `isWhole`: it is one argument, so that a value
 * behind its beginning goes to its end.
 */
export function maskPairs(text: string, isWhole = false): string {
  return new PairMask(text, isWhole).masked();
}

class PairMask {
  readonly #text: string;
  readonly #isWhole: boolean;
  readonly #reader: ValueReader;
  readonly #pieces: string[] = [];
  #done = 0;
  /** What the last `name` says of the `value` that follows, and up to where. */
  #named: { readonly strength: Strength; readonly until: number } | null = null;

  constructor(text: string, isWhole: boolean) {
    this.#text = text;
    this.#isWhole = isWhole;
    this.#reader = new ValueReader(text);
  }

  masked(): string {
    const names = new RegExp(NAME);
    for (let found = names.exec(this.#text); found !== null; found = names.exec(this.#text)) {
      if (!HINT.test(found[0])) continue;
      const end = this.#pair(nameAt(this.#text, found.index, found[0]));
      names.lastIndex = Math.max(names.lastIndex, end);
    }
    return [...this.#pieces, this.#text.slice(this.#done)].join('');
  }

  /** Where to go on; 0: behind the name. */
  #pair(name: Name): number {
    const place = { before: name.before, isQuery: name.isQuery };
    const header = headerOf(name.text);
    const isLabel = /^(?:name|key)$/i.test(name.text);
    const isValue = this.#named !== null && /^value$/i.test(name.text);
    const sure = header === null ? strengthOf(name.text, place) : HEADERS[header];
    if (sure === null && !isLabel && !isValue) return 0;
    const link = this.#linkOf(name, sure);
    if (link === null) return 0;
    if (header !== null && link.sign !== ' ') return this.#header(name, link, header);
    const value = this.#valueOf(name, link);
    if (isLabel && this.#remember(value, link)) return 0;
    const named = isValue && name.from < (this.#named?.until ?? 0) ? this.#named : null;
    const strength = named?.strength ?? sure;
    if (strength === null) return 0;
    const isLoose = this.#isLoose(name, link, value);
    const asked = isLoose && named === null;
    const judged = asked ? strengthOf(name.text, { ...place, isLoose }) : strength;
    if (judged === null || !this.#isCredential(value, judged, { name, link, isLoose })) return 0;
    const whole = value.to - value.from < BARE_LIMIT ? value : this.#valueOf(name, link, Infinity);
    // A member of JSON stays one.
    const isMember = name.quote.endsWith('"') && link.isClosed && link.sign === ':';
    const quote = isMember && !whole.isQuoted ? name.quote : '';
    return this.#replace(whole, `${quote}${MASK}${quote}`);
  }

  #isCredential(
    value: Value,
    strength: Strength,
    {
      name,
      link,
      isLoose,
    }: { readonly name: Name; readonly link: Link; readonly isLoose: boolean },
  ): boolean {
    const text = this.#text.slice(value.from, Math.min(value.to, value.from + LOOKED_AT));
    // A list or an object: its members are looked at.
    if (!value.isQuoted && /^[[{(]\s*(?:["'`[{]|$|[\w-]+\s?[:=])/.test(text)) return false;
    if (link.sign === ' ' && !value.isQuoted && /^(?:--[A-Za-z]|-[A-Za-z]$|--$|\()/.test(text))
      return false;
    if ((isLoose || link.sign === ' ') && SENTENCE.has(text.toLowerCase())) return false;
    // `--secret id=name`, as docker build has it.
    if (/^(?:id|type|source|src)=/.test(text)) return false;
    return isCredential(text, { strength, isFlag: name.isFlag, isLoose });
  }

  /** Whether this reads like a sentence: `token: expired`, but not as a line of its own. */
  #isLoose(name: Name, { sign }: Link, value: Value): boolean {
    if (sign !== ':' || value.isQuoted || name.quote !== '') return false;
    // What a runner of tests prints.
    if (name.text === 'PASS') return true;
    const before = this.#text.slice(Math.max(0, name.from - LOOKED_AT), name.from);
    const isSpaced = /\s/.test(this.#text[value.from - 1] ?? '');
    return isSpaced && !/(?:^|[\n{,])[ \t-]*$/.test(before);
  }

  /** A `name` or `key` whose value is a telling name. */
  #remember(value: Value, { sign }: Link): boolean {
    if (sign === ' ') return false;
    const text = this.#text.slice(value.from, Math.min(value.to, value.from + LOOKED_AT));
    const strength = /^[A-Za-z_][\w.-]{0,80}$/.test(text) ? strengthOf(text) : null;
    this.#named = strength === null ? null : { strength, until: value.end + NAMED_WITHIN };
    return strength !== null;
  }

  /** `Authorization`, whose scheme stays, and `Cookie`. */
  #header(name: Name, link: Link, header: Header): number {
    const opened = /[[({]/.test(this.#text[link.at] ?? '') ? 1 : 0;
    const at = link.at + opened;
    const bounded = this.#boundedValue(name, link, at);
    const end = bounded?.to ?? schemeEnd(this.#text, at, { header, reader: this.#reader });
    const masked = maskedHeaderValue(this.#text.slice(bounded?.from ?? at, end), header);
    if (masked === null || SENTENCE.has(this.#text.slice(at, end))) return 0;
    const from = bounded?.from ?? at;
    return this.#replace({ from, to: end, end: bounded?.end ?? end }, masked);
  }

  /**
   * A value whose end is certain: it is quoted, stands within quotes with its name, or is the rest
   * of the argument.
   */
  #boundedValue(name: Name, link: Link, at: number): Value | null {
    if (name.quote !== '' && !link.isClosed && link.sign === ':')
      return this.#reader.within(link.at, name.quote);
    const end = this.#endOf(name, link, BARE_LIMIT);
    if (end.ending === 'all' || end.ending === 'line') {
      const to = end.ending === 'all' ? this.#text.length : this.#reader.lineEnd(at);
      return { from: at, to, end: to, isQuoted: false };
    }
    const value = this.#reader.read(at, { ...end, most: 1 });
    return value.isQuoted ? value : null;
  }

  #valueOf(name: Name, link: Link, most = BARE_LIMIT): Value {
    if (name.quote !== '' && !link.isClosed && link.sign === ':')
      return this.#reader.within(link.at, name.quote);
    return this.#reader.read(link.at, this.#endOf(name, link, most));
  }

  #endOf(name: Name, { sign }: Link, most: number): ValueEnd {
    const isFirst = name.from <= 2 && /^(?:--?|\/)?$/.test(this.#text.slice(0, name.from));
    if (this.#isWhole && isFirst && sign !== ' ')
      return { ending: sign === ':' && !name.isFlag ? 'line' : 'all', sign, most };
    if (name.isEncoded || sign.startsWith('%')) return { ending: 'encoded', sign, most };
    return { ending: name.isQuery ? 'query' : 'word', sign, most };
  }

  #linkOf(name: Name, strength: Strength | null): Link | null {
    const { end } = name;
    const closing = this.#match(CLOSING, end)?.[0] ?? '';
    const isClosed = closing !== '' && name.quote !== '';
    const sign = this.#match(SIGN, end + closing.length);
    if (sign !== null) {
      // `/etc/passwd:` is a path.
      if (sign[1] === ':' && !name.isFlag && this.#text[name.from - 1] === '/') return null;
      const block = this.#match(BLOCK, SIGN.lastIndex);
      return {
        at: block === null ? SIGN.lastIndex : BLOCK.lastIndex,
        sign: /:/.test(sign[1] ?? '') ? ':' : (sign[1] ?? '='),
        isClosed,
      };
    }
    if (this.#text[name.from - 1] === '<' && this.#text[end] === '>')
      return { at: end + 1, sign: '=', isClosed: false };
    const gap = this.#gapBehind(name, strength);
    return gap === null || this.#match(gap, end) === null
      ? null
      : { at: gap.lastIndex, sign: ' ', isClosed };
  }

  /** What stands between a name and its value where no sign does; null where nothing can. */
  #gapBehind({ from, end, isFlag, quote, before }: Name, strength: Strength | null): RegExp | null {
    if (isFlag) return OPTION_GAP;
    const text = this.#text;
    if (quote !== '' && /[([]b?$/.test(text.slice(0, from - quote.length).slice(-2)))
      return TUPLE_GAP;
    if (before.toLowerCase() === 'set') return SPACE;
    // `PASSWORD 'x'` of SQL.
    const follows = this.#match(SPACE, end) === null ? '' : text[SPACE.lastIndex];
    return strength === 'certain' && follows === "'" && quote === '' ? SPACE : null;
  }

  #replace({ from, to, end }: Pick<Value, 'from' | 'to' | 'end'>, masked: string): number {
    this.#pieces.push(this.#text.slice(this.#done, from), masked);
    this.#done = to;
    return end;
  }

  #match(pattern: RegExp, at: number): RegExpExecArray | null {
    pattern.lastIndex = at;
    return pattern.exec(this.#text);
  }
}
