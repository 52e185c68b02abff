import type { Attributes, Metric, Seconds } from './types.ts';

/**
 * Lines of metrics in the layout that our writer gives them, read without building objects of what repeats. Most of a large recording is such
 * lines, and of a line most is the same in each: envelopes, names, descriptions, attributes. They are looked up as text; JSON.parse sees each
 * once. A line that differs anywhere is not touched: it goes the long way.
 */

/** What the long way knows, which the scan asks for once for each text. `Scope` is the decoder's. */
export interface ScanHooks<Scope> {
  /** The scope of an envelope with no metrics in it; null where it is not one resource with one scope. */
  envelope(payload: unknown): Scope | null;
  attributes(list: unknown, scope: Scope): Attributes;
  /** Of a metric without points; null where its points are no numbers, or it has no name. */
  numbers(metric: unknown): Metric | null;
  /** A metric that is no list of numbers. */
  other(metric: unknown, scope: Scope): void;
  describe(metric: Metric): void;
  sample(at: Seconds, metric: string, value: number, attributes: Attributes): void;
}

const OPENING = '{"resourceMetrics":[';
/** Where it differs from lines of spans and logs. */
const MARK = OPENING.indexOf('M');
const METRICS = '"metrics":[';
const POINTS = '"dataPoints":[';
const POINT = '{"attributes":';
const TIME = ',"timeUnixNano":"';
const ATTRIBUTES_END = `]${TIME}`;
const DOUBLE = '","asDouble":';
const INTEGER = '","asInt":"';
const TEMPORALITY = '],"aggregationTemporality":';
/** How a metric ends after its points: gauges, then sums. */
const ENDINGS = [
  ']}}',
  '],"aggregationTemporality":2,"isMonotonic":true}}',
  '],"aggregationTemporality":2,"isMonotonic":false}}',
] as const;
/** Texts remembered of each kind; a file with more distinct ones is read at the price of parsing them again. */
const CACHE_LIMIT = 20_000;
/** What repeats is short, and a histogram of ours at most 20 kB; a line made to harm must not be parsed twice. */
const PIECE_LIMIT = 65_536;
/** Unix time in nanoseconds, from 2001 to 2286. */
const NANOS_DIGITS = 19;
const WHOLE_DIGITS = 10;
/** Integers of so many digits are exact in a double, and in the sum that makes them. */
const EXACT_DIGITS = 15;
const ZERO = 48;
const NINE = 57;
const COMMA = 44;
const BRACE = 125;
const NUMBER = /^-?(?:0|[1-9]\d*)(?:\.\d+)?(?:[eE][-+]?\d+)?$/;

/** Why a line goes the long way. Thrown and caught in here: it is the exception, and a check at each step costs more. */
class Unlike extends Error {}

interface Known {
  readonly metric: Metric;
  isDescribed: boolean;
}

/** The text of a metric up to its points. */
interface Header {
  readonly text: string;
  readonly isOther: boolean;
  /** By its ending. */
  readonly by: Known[];
  /** What came after it last time. */
  next: Header | null;
}

interface Envelope<Scope> {
  readonly scope: Scope;
  readonly attributes: Map<string, Attributes>;
  /** What closed it in lines before. */
  readonly endings: Set<string>;
}

export class MetricLineScanner<Scope extends object> {
  readonly #hooks: ScanHooks<Scope>;
  readonly #envelopes = new Map<string, Envelope<Scope>>();
  readonly #headers = new Map<string, Header>();
  #previous: Header | null = null;
  /** What a line holds, kept back until it is known to be whole. */
  readonly #at: Seconds[] = [];
  readonly #value: number[] = [];
  readonly #attributes: Attributes[] = [];
  readonly #metrics: Known[] = [];
  readonly #others: unknown[] = [];
  #text = '';
  #position = 0;

  constructor(hooks: ScanHooks<Scope>) {
    this.#hooks = hooks;
  }

  /** Whether the line was read; false: nothing of it was, and it has to go the long way. */
  line(bytes: Buffer): boolean {
    if (bytes[MARK] !== OPENING.charCodeAt(MARK)) return false;
    // One byte, one character: what is not ASCII is put right where it is parsed.
    this.#text = bytes.toString('latin1');
    for (const list of [this.#at, this.#value, this.#attributes, this.#metrics, this.#others])
      list.length = 0;
    try {
      const scope = this.#read();
      this.#emit(scope);
      return true;
    } catch (error) {
      if (error instanceof Unlike || error instanceof SyntaxError) return false;
      throw error;
    } finally {
      this.#text = '';
    }
  }

  #emit(scope: Scope): void {
    const hooks = this.#hooks;
    for (const other of this.#others) hooks.other(other, scope);
    for (let i = 0; i < this.#at.length; i++) {
      const known = this.#metrics[i];
      const attributes = this.#attributes[i];
      if (known === undefined || attributes === undefined) continue;
      if (!known.isDescribed) {
        known.isDescribed = true;
        hooks.describe(known.metric);
      }
      hooks.sample(this.#at[i] ?? 0, known.metric.name, this.#value[i] ?? 0, attributes);
    }
  }

  #read(): Scope {
    const text = this.#text;
    const begin = text.indexOf(METRICS) + METRICS.length;
    if (!text.startsWith(OPENING) || begin < METRICS.length) throw new Unlike();
    const opening = text.slice(0, begin);
    const { scope, attributes } = this.#envelope(opening);
    this.#position = begin;
    for (;;) {
      this.#metric(attributes, scope);
      if (text.charCodeAt(this.#position) !== COMMA) break;
      this.#position++;
    }
    // The rest closes the envelope; further resources in it would be further scopes.
    this.#ending(opening, text.slice(this.#position));
    return scope;
  }

  #envelope(opening: string): Envelope<Scope> {
    const known = this.#envelopes.get(opening);
    if (known !== undefined) return known;
    const scope = this.#hooks.envelope(parse(`${opening}]}]}]}`));
    if (scope === null) throw new Unlike();
    const fresh = { scope, attributes: new Map<string, Attributes>(), endings: new Set<string>() };
    keep(this.#envelopes, opening, fresh);
    return fresh;
  }

  #ending(opening: string, ending: string): void {
    const envelope = this.#envelope(opening);
    if (envelope.endings.has(ending)) return;
    if (this.#hooks.envelope(parse(opening + ending)) === null) throw new Unlike();
    if (envelope.endings.size < CACHE_LIMIT) envelope.endings.add(ending);
  }

  #metric(attributes: Map<string, Attributes>, scope: Scope): void {
    const text = this.#text;
    const begin = this.#position;
    const header = this.#header(begin);
    const points = begin + header.text.length;
    if (header.isOther) {
      this.#other(begin, points);
      return;
    }
    const from = this.#at.length;
    this.#position = points;
    this.#points(attributes, scope);
    const ending = ENDINGS.findIndex((one) => text.startsWith(one, this.#position));
    const last = ENDINGS[ending];
    if (last === undefined) throw new Unlike();
    const known = header.by[ending] ?? this.#known(header, ending, last);
    for (let i = from; i < this.#at.length; i++) this.#metrics[i] = known;
    this.#position += last.length;
  }

  /** What stands before the points. Metrics follow each other as they did in the line before, most of the time. */
  #header(begin: number): Header {
    const text = this.#text;
    const expected = this.#previous?.next ?? null;
    if (expected !== null && text.slice(begin, begin + expected.text.length) === expected.text) {
      this.#previous = expected;
      return expected;
    }
    const end = text.indexOf(POINTS, begin) + POINTS.length;
    if (end < POINTS.length) throw new Unlike();
    const piece = text.slice(begin, end);
    let header = this.#headers.get(piece);
    if (header === undefined) {
      const isOther = piece.includes('"exponentialHistogram"');
      header = { text: copyOf(piece), isOther, by: [], next: null };
      keep(this.#headers, header.text, header);
    }
    if (this.#previous !== null) this.#previous.next = header;
    this.#previous = header;
    return header;
  }

  /** One whose points are no numbers: as an object, in the layout of ours all the same. */
  #other(begin: number, points: number): void {
    const end = this.#text.indexOf('}}', this.#text.indexOf(TEMPORALITY, points)) + 2;
    if (end <= points) throw new Unlike();
    this.#others.push(parse(this.#text.slice(begin, end)));
    this.#position = end;
  }

  #known(header: Header, ending: number, last: string): Known {
    const metric = this.#hooks.numbers(parse(header.text + last));
    if (metric === null) throw new Unlike();
    const fresh = { metric, isDescribed: false };
    header.by[ending] = fresh;
    return fresh;
  }

  /** `{…},{…}`: leaves the position at what comes after. */
  #points(known: Map<string, Attributes>, scope: Scope): void {
    const text = this.#text;
    let at = this.#position;
    for (;;) {
      if (!text.startsWith(POINT, at)) throw new Unlike();
      at += POINT.length;
      const end = text.indexOf(ATTRIBUTES_END, at) + 1;
      if (end === 0) throw new Unlike();
      const list = text.slice(at, end);
      this.#attributes.push(known.get(list) ?? this.#newAttributes(list, known, scope));
      at = end + TIME.length;
      this.#at.push(secondsAt(text, at));
      at += NANOS_DIGITS;
      at = text.startsWith(DOUBLE, at) ? this.#double(at + DOUBLE.length) : this.#integer(at);
      if (text.charCodeAt(at) !== COMMA) break;
      at++;
    }
    this.#position = at;
  }

  /** Both leave the value, and give where the point has ended. */
  #double(from: number): number {
    const end = this.#text.indexOf('}', from);
    this.#value.push(numberIn(this.#text, from, end));
    return end + 1;
  }

  #integer(at: number): number {
    if (!this.#text.startsWith(INTEGER, at)) throw new Unlike();
    const from = at + INTEGER.length;
    const end = this.#text.indexOf('"', from);
    if (this.#text.charCodeAt(end + 1) !== BRACE) throw new Unlike();
    this.#value.push(numberIn(this.#text, from, end));
    return end + 2;
  }

  #newAttributes(list: string, known: Map<string, Attributes>, scope: Scope): Attributes {
    const attributes = this.#hooks.attributes(parse(list), scope);
    keep(known, list, attributes);
    return attributes;
  }
}

function keep<V>(map: Map<string, V>, key: string, value: V): void {
  if (map.size >= CACHE_LIMIT) map.clear();
  map.set(copyOf(key), value);
}

/** A slice would keep the whole line. */
function copyOf(piece: string): string {
  return Buffer.from(piece, 'latin1').toString('latin1');
}

/** The value of a piece of a line, whose bytes are UTF-8. Throws a SyntaxError. */
function parse(piece: string): unknown {
  if (piece.length > PIECE_LIMIT) throw new Unlike();
  return JSON.parse(Buffer.from(piece, 'latin1').toString('utf8')) as unknown;
}

/** To the same double as `fromNanos`: seconds and nanoseconds apart. */
function secondsAt(text: string, at: number): Seconds {
  let whole = 0;
  let nanos = 0;
  for (let i = at; i < at + WHOLE_DIGITS; i++) whole = whole * 10 + digitAt(text, i);
  for (let i = at + WHOLE_DIGITS; i < at + NANOS_DIGITS; i++) nanos = nanos * 10 + digitAt(text, i);
  return whole + nanos / 1e9;
}

function digitAt(text: string, at: number): number {
  const code = text.charCodeAt(at);
  if (code < ZERO || code > NINE) throw new Unlike();
  return code - ZERO;
}

/** A number as JSON writes it; not the names of those that are not finite. */
function numberIn(text: string, from: number, end: number): number {
  if (end - from <= EXACT_DIGITS && end > from) {
    let number = 0;
    let i = from;
    for (; i < end; i++) {
      const code = text.charCodeAt(i);
      if (code < ZERO || code > NINE) break;
      number = number * 10 + (code - ZERO);
    }
    if (i === end) return number;
  }
  const piece = text.slice(from, end);
  if (!NUMBER.test(piece)) throw new Unlike();
  return Number(piece);
}
