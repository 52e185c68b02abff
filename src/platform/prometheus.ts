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

/** Reads a page. Total: it never throws. */
export function parsePage(text: string): Page {
  const families = new Map<string, { type: FamilyType; help: string; unit: string }>();
  const samples: PageSample[] = [];
  let unreadable = 0;
  let dropped = 0;
  for (const line of linesOf(text)) {
    if (line === '# EOF') break;
    if (line.startsWith('#')) {
      describe(line, families);
      continue;
    }
    const sample = parseSample(line);
    if (sample === null) unreadable++;
    else if (samples.length >= SAMPLES_LIMIT) dropped++;
    else samples.push({ ...sample, family: familyOf(sample.name, families) });
  }
  const named = [...families].map(([name, family]) => [name, { name, ...family }] as const);
  return { families: new Map(named), samples, unreadable, dropped };
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
  const value = valueOf(cursor.token());
  if (name === '' || name.length > NAME_LIMIT || value === null) return null;
  return { name, labels: Object.fromEntries(labels), value };
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
