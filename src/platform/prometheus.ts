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

/** Reads a page. Total: it never throws. `memory` makes the second page of a server cost a third of the first. */
export function parsePage(text: string, memory: PageMemory = new PageMemory()): Page {
  const families = new Map<string, Description>();
  const read: Omit<PageSample, 'family'>[] = [];
  let unreadable = 0;
  let dropped = 0;
  for (const line of linesOf(text)) {
    if (line === '# EOF') break;
    if (line.startsWith('#')) {
      describe(line, families);
      continue;
    }
    const sample = parsePlain(line, memory) ?? parseSample(line);
    if (sample === null) unreadable++;
    else if (read.length >= SAMPLES_LIMIT) dropped++;
    else read.push(sample);
  }
  const named = [...families].map(([name, family]) => [name, { name, ...family }] as const);
  return { families: new Map(named), samples: withFamilies(read, families), unreadable, dropped };
}

function withFamilies(
  read: readonly Omit<PageSample, 'family'>[],
  families: ReadonlyMap<string, Description>,
): readonly PageSample[] {
  // A page of 10,000 series has a few hundred names.
  const known = new Map<string, string>();
  return read.map(({ name, labels, value, series }) => {
    let family = known.get(name);
    if (family === undefined) {
      family = familyOf(name, families);
      known.set(name, family);
    }
    return { name, family, labels, value, series };
  });
}

/** Lines that hold something, without their line feed and the spaces around. */
function* linesOf(text: string): Generator<string> {
  let from = 0;
  while (from < text.length) {
    const end = text.indexOf('\n', from);
    const line = text.slice(from, end === -1 ? text.length : end).trim();
    from = end === -1 ? text.length : end + 1;
    if (line !== '') yield line;
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

/** What a page says before the value. */
interface Head {
  readonly name: string;
  readonly labels: Labels;
}

/** Of the pages of one server: what was read of a series once need not be read again. */
export class PageMemory {
  readonly #heads = new Map<string, Head | null>();
  // Histograms repeat their labels from name to name.
  readonly #blocks = new Map<string, Labels | null>();

  /** Null for what is not written plainly: `parseSample` reads that. */
  headOf(series: string): Head | null {
    let head = this.#heads.get(series);
    if (head === undefined) {
      if (this.#heads.size >= SAMPLES_LIMIT) this.#forget();
      head = this.#read(series);
      this.#heads.set(series, head);
    }
    return head;
  }

  #read(series: string): Head | null {
    const [, name, block = ''] = PLAIN_HEAD.exec(series) ?? [];
    if (name === undefined) return null;
    let labels = this.#blocks.get(block);
    if (labels === undefined) {
      labels = plainLabels(block);
      this.#blocks.set(block, labels);
    }
    return labels === null ? null : { name, labels };
  }

  #forget(): void {
    this.#heads.clear();
    this.#blocks.clear();
  }
}

const PLAIN_HEAD = /^([A-Za-z_:][\w:.]{0,199})(?:\{([^}\\]*)\})?$/;
const PLAIN_NUMBER = /^[-+\d.eE]+$/;
const PLAIN_LABEL = /([A-Za-z_]\w{0,199})="([^"\\]{0,400})"(?:,|$)/y;

/**
 * Nearly every line that a server writes: no escapes, no timestamp, one space. Null for all others, which `parseSample` reads. Measured: a tenth
 * of the time of reading character by character (docs/decisions/0013).
 */
function parsePlain(line: string, memory: PageMemory): Omit<PageSample, 'family'> | null {
  const open = line.indexOf('{');
  const end = open === -1 ? line.indexOf(' ') : line.indexOf('}', open) + 1;
  if (end < 1 || end > SERIES_LIMIT || line.charCodeAt(end) !== SPACE) return null;
  const number = line.slice(end + 1);
  if (!PLAIN_NUMBER.test(number)) return null;
  const series = line.slice(0, end);
  const head = memory.headOf(series);
  const value = Number(number);
  if (head === null || Number.isNaN(value)) return null;
  return { name: head.name, labels: head.labels, value, series };
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
function parseSample(line: string): Omit<PageSample, 'family'> | null {
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
  return { name, labels: Object.fromEntries(labels), value, series };
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
