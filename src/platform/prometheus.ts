import { ownText } from '../core/text.ts';
import type { Bytes } from '../core/types.ts';
import { LineCursor } from './prometheus-cursor.ts';

/**
 * Pages for Prometheus: the text exposition format 0.0.4 (https://prometheus.io/docs/instrumenting/exposition_formats/) and OpenMetrics 1.0
 * (https://prometheus.io/docs/specs/om/open_metrics_spec/), also mixed as real servers do it. A page may say anything: what does not parse is
 * counted and left out, and nothing grows without a bound.
 */

/** A page larger than this is not read on. vLLM's has 100 kB. */
export const PAGE_LIMIT: Bytes = 8 * 1024 * 1024;
const SAMPLES_LIMIT = 50_000;
const FAMILIES_LIMIT = 5_000;
const LABELS_LIMIT = 64;
const NAME_LIMIT = 200;
const VALUE_LIMIT = 400;
/** Of name and labels together. */
const SERIES_LIMIT = 2000;
const SPACE = 0x20;
const HASH = 0x23;

export type FamilyType =
  | 'counter'
  | 'gauge'
  | 'histogram'
  | 'gaugehistogram'
  | 'summary'
  | 'info'
  | 'stateset'
  | 'unknown';

const TYPES: readonly FamilyType[] = [
  'counter',
  'gauge',
  'histogram',
  'gaugehistogram',
  'summary',
  'info',
  'stateset',
];

/** A metric with its suffixes: `_bucket`, `_sum`, `_count` of a histogram belong to one family. Text is the server's: untrusted. */
export interface Family {
  readonly name: string;
  readonly type: FamilyType;
  readonly help: string;
  /** Of OpenMetrics; empty where the page does not say. */
  readonly unit: string;
}

/** One number of a page. Its own timestamp and exemplar, which few pages have, are read over. */
export interface PageSample {
  /** With its suffix. */
  readonly name: string;
  /** Name of its family, the same where nothing is said of one. */
  readonly family: string;
  readonly labels: Readonly<Record<string, string>>;
  readonly value: number;
  /** Name and labels as the page writes them: the same from page to page of one server. */
  readonly series: string;
}

export interface Page {
  readonly families: ReadonlyMap<string, Family>;
  readonly samples: readonly PageSample[];
  /** Lines that are neither a sample nor a comment. */
  readonly unreadable: number;
  /** Samples beyond the limit. */
  readonly dropped: number;
}

const SUFFIXES = ['_total', '_bucket', '_count', '_sum', '_created', '_info', '_gsum', '_gcount'];

type Mutable<T> = { -readonly [key in keyof T]: T[key] };

/** Reads a page. Total: it never throws. `memory` spares what a server repeats from page to page: names, labels. */
export function parsePage(text: string, memory: PageMemory = new PageMemory()): Page {
  const families = new Map<string, Description>();
  const samples: Mutable<PageSample>[] = [];
  let unreadable = 0;
  let dropped = 0;
  memory.beginPage();
  const cursor = new BraceCursor(text);
  for (let from = 0; from < text.length;) {
    const feed = text.indexOf('\n', from);
    const to = feed === -1 ? text.length : feed;
    let sample = parsePlain(cursor, { from, to }, memory);
    if (sample === null) {
      const line = text.slice(from, to).trim();
      if (line === '# EOF') break;
      if (line.startsWith('#')) describe(line, families);
      else if (line !== '') {
        sample = parseSample(line);
        if (sample === null) unreadable++;
      }
    }
    from = to + 1;
    if (sample === null) continue;
    if (samples.length >= SAMPLES_LIMIT) dropped++;
    else samples.push(sample);
  }
  nameFamilies(samples, families);
  const named = [...families].map(([name, family]) => [name, { name, ...family }] as const);
  return { families: new Map(named), samples, unreadable, dropped };
}

/** A type may be said after the samples, so families are known at the end of a page. */
function nameFamilies(
  samples: readonly Mutable<PageSample>[],
  families: ReadonlyMap<string, Description>,
): void {
  // A page of 10,000 series has a few hundred names, those of one together.
  const known = new Map<string, string>();
  let last = '';
  let family = '';
  for (const sample of samples) {
    if (sample.name !== last) {
      last = sample.name;
      family = known.get(last) ?? familyOf(last, families);
      known.set(last, family);
    }
    sample.family = family;
  }
}

type Labels = PageSample['labels'];
type Description = { type: FamilyType; help: string; unit: string };

/** `# TYPE name counter`, `# HELP name text`, `# UNIT name seconds`; any other comment says nothing. */
function describe(line: string, families: Map<string, Description>): void {
  const match = /^#[ \t]+(TYPE|HELP|UNIT)[ \t]+("(?:[^"\\]|\\.)*"|\S+)[ \t]*(.*)$/.exec(line);
  const [, what, quoted, rest] = match ?? [];
  if (what === undefined || quoted === undefined || rest === undefined) return;
  const name = (quoted.startsWith('"') ? unescape(quoted.slice(1, -1)) : quoted).slice(
    0,
    NAME_LIMIT,
  );
  const known = families.get(name);
  if (known === undefined && families.size >= FAMILIES_LIMIT) return;
  const family = known ?? { type: 'unknown', help: '', unit: '' };
  families.set(name, family);
  if (what === 'TYPE') family.type = TYPES.find((type) => type === rest.toLowerCase()) ?? 'unknown';
  else if (what === 'HELP') family.help = unescape(rest).slice(0, VALUE_LIMIT);
  else family.unit = rest.slice(0, NAME_LIMIT);
}

/** The family that was described under the name, or under the name without its suffix. */
function familyOf(name: string, families: ReadonlyMap<string, Description>): string {
  if (families.has(name)) return name;
  for (const suffix of SUFFIXES) {
    const base = name.slice(0, -suffix.length);
    if (name.endsWith(suffix) && families.has(base)) return base;
  }
  return name;
}

/** Of the pages of one server: names and labels that were read once need not be read again. */
export class PageMemory {
  readonly #names = new Map<string, string | null>();
  // Histograms repeat their labels from name to name.
  readonly #labels = new Map<string, Labels | null>();
  #pages = 0;

  /** To be said before each page; what is remembered has a bound. */
  beginPage(): void {
    this.#pages++;
    if (this.#labels.size + this.#names.size < SAMPLES_LIMIT) return;
    this.#names.clear();
    this.#labels.clear();
    this.#pages = 1;
  }

  /** Null for a name that is not written plainly. */
  nameOf(text: string): string | null {
    let name = this.#names.get(text);
    if (name === undefined) {
      const own = this.#own(text);
      name = PLAIN_NAME.test(own) ? own : null;
      this.#names.set(own, name);
    }
    return name;
  }

  /** Of what stands between the braces; null for what is not written plainly. */
  labelsOf(text: string): Labels | null {
    let labels = this.#labels.get(text);
    if (labels === undefined) {
      const own = this.#own(text);
      labels = plainLabels(own);
      this.#labels.set(own, labels);
    }
    return labels;
  }

  /** What is cut from a page keeps the whole page in memory: no harm of the first one, a leak of each later one that says something new. */
  #own(text: string): string {
    return this.#pages === 1 ? text : ownText(text);
  }
}

/** Where the next braces of a page are: each is looked for once, however many lines have none. */
class BraceCursor {
  readonly text: string;
  #open = -1;
  #close = -1;

  constructor(text: string) {
    this.text = text;
  }

  openFrom(from: number): number {
    if (this.#open < from) this.#open = this.#find('{', from);
    return this.#open;
  }

  closeFrom(from: number): number {
    if (this.#close < from) this.#close = this.#find('}', from);
    return this.#close;
  }

  #find(brace: string, from: number): number {
    const at = this.text.indexOf(brace, from);
    return at === -1 ? Number.POSITIVE_INFINITY : at;
  }
}

const NO_LABELS: Labels = {};
const PLAIN_NAME = /^[A-Za-z_:][\w:.]{0,199}$/;
const PLAIN_NUMBER = /^[-+\d.eE]+$/;
const PLAIN_LABEL = /([A-Za-z_]\w{0,199})="([^"\\]{0,400})"(?:,|$)/y;

/**
 * Nearly every line that a server writes: no escapes, no timestamp, one space. Null for all others, which `parseSample` reads. Measured: a tenth
 * of the time of reading character by character (docs/decisions/0013).
 */
function parsePlain(
  cursor: BraceCursor,
  { from, to }: { readonly from: number; readonly to: number },
  memory: PageMemory,
): Mutable<PageSample> | null {
  const { text } = cursor;
  if (text.charCodeAt(from) === HASH) return null;
  const open = cursor.openFrom(from);
  const hasLabels = open < to;
  const end = hasLabels ? cursor.closeFrom(open) + 1 : text.indexOf(' ', from);
  if (end <= from || end >= to || end - from > SERIES_LIMIT) return null;
  if (text.charCodeAt(end) !== SPACE) return null;
  const number = text.slice(end + 1, to);
  if (!PLAIN_NUMBER.test(number)) return null;
  const value = Number(number);
  if (Number.isNaN(value)) return null;
  const name = memory.nameOf(text.slice(from, hasLabels ? open : end));
  if (name === null) return null;
  const labels = hasLabels ? memory.labelsOf(text.slice(open + 1, end - 1)) : NO_LABELS;
  if (labels === null) return null;
  return { name, family: '', labels, value, series: text.slice(from, end) };
}

function plainLabels(block: string): Labels | null {
  const labels: [string, string][] = [];
  PLAIN_LABEL.lastIndex = 0;
  while (PLAIN_LABEL.lastIndex < block.length) {
    const [, name, value] = PLAIN_LABEL.exec(block) ?? [];
    // A failed match begins anew at 0.
    if (name === undefined || value === undefined || labels.length >= LABELS_LIMIT) return null;
    labels.push([name, value]);
  }
  return Object.fromEntries(labels);
}

/** `name{label="value",…} value [timestamp] [# exemplar]`; null for anything else. */
function parseSample(line: string): Mutable<PageSample> | null {
  const cursor = new LineCursor(line);
  let name = cursor.word();
  const labels: [string, string][] = [];
  cursor.spaces();
  if (cursor.take('{')) {
    for (;;) {
      cursor.spaces();
      if (cursor.take('}')) break;
      // Prometheus 3 quotes names that are more than word characters, the metric's own inside the braces.
      const quoted = cursor.quoted();
      const label = quoted ?? cursor.word();
      if (label === '') return null;
      cursor.spaces();
      if (cursor.take('=')) {
        cursor.spaces();
        const value = cursor.quoted();
        if (value === null) return null;
        if (labels.length < LABELS_LIMIT)
          labels.push([label.slice(0, NAME_LIMIT), value.slice(0, VALUE_LIMIT)]);
      } else if (quoted !== null && name === '') name = quoted;
      else return null;
      cursor.spaces();
      if (!cursor.take(',') && !cursor.sees('}')) return null;
    }
  }
  const series = cursor.before().slice(0, SERIES_LIMIT);
  const value = valueOf(cursor.token());
  if (name === '' || name.length > NAME_LIMIT || value === null) return null;
  return { name, family: '', labels: Object.fromEntries(labels), value, series };
}

/** As Go's ParseFloat, which Prometheus uses, reads what servers write; null for no number. */
function valueOf(text: string): number | null {
  const special = /^([+-]?)(?:inf(?:inity)?|(nan))$/i.exec(text);
  if (special !== null) {
    if (special[2] !== undefined) return Number.NaN;
    return special[1] === '-' ? Number.NEGATIVE_INFINITY : Number.POSITIVE_INFINITY;
  }
  return /^[+-]?(?:\d+\.?\d*|\.\d+)(?:e[+-]?\d+)?$/i.test(text) ? Number(text) : null;
}

/** `\\`, `\"` and `\n`; a backslash before anything else stands for itself. */
function unescape(text: string): string {
  return text.replace(/\\([\\"n])/g, (_, what: string) => (what === 'n' ? '\n' : what));
}
