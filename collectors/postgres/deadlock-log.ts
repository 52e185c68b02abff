import type { DeadlockMember, DeadlockReport } from '../../src/core/database-look.ts';
import { queryShape } from '../../src/core/query-shape.ts';
import { printable } from '../../src/core/text.ts';
import type { Seconds } from '../../src/core/types.ts';

/**
 * Deadlock reports in PostgreSQL's log, as text, as CSV or as JSON lines, with English messages (lc_messages). What stands in a log was written by
 * whoever sent statements: all of it is bounded.
 */

const MEMBERS = 16;
/** A statement of many lines ends a report that would not end. */
const LINES = 200;
const LINE_LIMIT = 8192;
const STATEMENT_LIMIT = 4000;

const BEGINS = /\bdeadlock detected\b/;
const WAITS = /Process (\d{1,10}) waits for (.{1,200}?); blocked by process (\d{1,10})\./;
const STATEMENT = /^[\s",]*Process (\d{1,10}): (.*)$/;
const RELATION = /\bin relation "+([^"]{1,200})"/;
/** The default prefix is `%m [%p] `; CSV has `2026-11-23 15:12:24.465 UTC,` in its first column. */
const WHEN = /^"?(\d{4}-\d\d-\d\d)[T ](\d\d:\d\d:\d\d(?:\.\d+)?) ?(UTC|GMT|Z|[+-]\d\d(?::?\d\d)?)?/;
/** What belongs to a message in text, where further lines begin with a tab; and what begins a message of its own. */
const DETAIL = /\bDETAIL:  /;
const NEXT_PART = /\b(?:HINT|CONTEXT|STATEMENT|QUERY|LOCATION|BACKTRACE):  /;
const NEXT_MESSAGE = /\b(?:LOG|WARNING|ERROR|FATAL|PANIC|NOTICE|INFO|DEBUG\d?):  /;

type Draft = { -readonly [K in keyof DeadlockMember]: DeadlockMember[K] };

/** Reads a log line by line and gives each report once it is whole. */
export class DeadlockReader {
  readonly #log: string;
  #lines = 0;
  #at: Seconds | null = null;
  #members: Map<number, Draft> | null = null;
  #current: Draft | null = null;
  #relation: string | null = null;

  constructor(log: string) {
    this.#log = printable(log, 200);
  }

  /** One line without its end; gives the report that it ends. */
  line(text: string, isOld: boolean): DeadlockReport | null {
    const line = text.slice(0, LINE_LIMIT);
    if (line.startsWith('{')) return this.#jsonLine(line, isOld);
    const begins = BEGINS.test(line) && !line.startsWith('\t');
    if (begins) {
      const before = this.end(isOld);
      this.#begin(line);
      // CSV has message and detail in one record.
      this.#take(line.slice(line.search(BEGINS)));
      return before;
    }
    if (this.#members === null) return null;
    const isFull = ++this.#lines > LINES;
    const isPart = line.startsWith('\t') || DETAIL.test(line) || NEXT_PART.test(line);
    const isNext = !isPart && (NEXT_MESSAGE.test(line) || WHEN.test(line));
    if (isFull || isNext) return this.end(isOld);
    this.#take(line);
    return null;
  }

  /** What is left where the log ends, or has been quiet; null where that is no report. */
  end(isOld: boolean): DeadlockReport | null {
    const members = [...(this.#members?.values() ?? [])];
    const report = { log: this.#log, at: this.#at, isOld, relation: this.#relation };
    this.#members = null;
    this.#current = null;
    if (members.length < 2) return null;
    return {
      ...report,
      members: members.map((one) => ({
        ...one,
        statement: one.statement === null ? null : queryShape(one.statement),
      })),
    };
  }

  #begin(line: string): void {
    this.#members = new Map();
    this.#lines = 0;
    this.#relation = null;
    this.#at = timeOf(line);
  }

  #take(line: string): void {
    this.#relation ??= relationOf(line);
    const waits = WAITS.exec(line);
    if (waits !== null) {
      const one = this.#member(Number(waits[1]));
      if (one === null) return;
      one.wants ??= printable(waits[2] ?? '', 120);
      one.blockedBy ??= Number(waits[3]);
      this.#current = null;
      return;
    }
    const statement = STATEMENT.exec(line);
    if (statement !== null) {
      this.#current = this.#member(Number(statement[1]));
      if (this.#current !== null) this.#current.statement = endOf(statement[2] ?? '');
      return;
    }
    if (NEXT_PART.test(line)) this.#current = null;
    else if (this.#current !== null && (this.#current.statement ?? '').length < STATEMENT_LIMIT)
      this.#current.statement += `\n${line.trim()}`;
  }

  #member(pid: number): Draft | null {
    const members = this.#members;
    if (members === null) return null;
    const known = members.get(pid);
    if (known !== undefined) return known;
    if (members.size >= MEMBERS) return null;
    const fresh: Draft = { pid, wants: null, blockedBy: null, statement: null };
    members.set(pid, fresh);
    return fresh;
  }

  /** `jsonlog` since PostgreSQL 15: one object a message. */
  #jsonLine(line: string, isOld: boolean): DeadlockReport | null {
    const before = this.end(isOld);
    if (!BEGINS.test(line)) return before;
    let entry: Readonly<Record<string, unknown>>;
    try {
      entry = JSON.parse(line) as typeof entry;
    } catch {
      return before; // cut, or no JSON at all
    }
    const { timestamp, message, detail, context } = entry;
    if (message !== 'deadlock detected' || typeof detail !== 'string') return before;
    this.#begin(typeof timestamp === 'string' ? timestamp : '');
    if (typeof context === 'string') this.#relation = relationOf(context);
    for (const one of detail.split('\n', LINES)) this.#take(one);
    // Two reports in a row: the one before had no end of its own.
    return before ?? this.end(isOld);
  }
}

/** In CSV the statement is followed by the end of the quoted detail. */
function endOf(statement: string): string {
  return statement.replace(/",.*$/, '').replaceAll('""', '"');
}

function relationOf(text: string): string | null {
  const name = RELATION.exec(text)?.[1];
  return name === undefined ? null : printable(name, 100);
}

/** Names of zones other than UTC are many and mean several things: such a time is not known. */
function timeOf(line: string): Seconds | null {
  const [, day, time, zone] = WHEN.exec(line) ?? [];
  if (day === undefined || time === undefined || zone === undefined) return null;
  const offset = /^[+-]/.test(zone) ? zone.padEnd(6, ':00').replace(/^(...)(\d\d)$/, '$1:$2') : 'Z';
  const at = Date.parse(`${day}T${time.slice(0, 12)}${offset}`);
  return Number.isNaN(at) ? null : at / 1e3;
}
