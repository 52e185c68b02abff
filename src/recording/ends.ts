import { isOverNested } from '../core/nesting.ts';
import { otlpDecoder } from '../core/otlp-decode.ts';
import { EVENT } from '../core/semconv.ts';
import type { Bytes, Finding, RunEnd, RunStart, Seconds } from '../core/types.ts';
import type { Segment } from './locate.ts';
import { readLines } from './lines.ts';
import { openOutside } from '../platform/outside-file.ts';

/** How a recording begins and ends: its first line, and the last of its last file. */

/** The findings of a run, its root span and its end are a few kB; a line is 1 MB at most. */
const TAIL: Bytes = 4 * 1024 * 1024;
const NEWLINE = 0x0a;
const WORTH_PARSING = [EVENT.runEnd, EVENT.finding].map((name) => Buffer.from(`"${name}"`));

export interface Ends {
  /** Null where the first line is not that of a recording of ours. */
  readonly start: RunStart | null;
  readonly end: RunEnd | null;
  /** Of the last line that can be read; null when there is none. */
  readonly lastAt: Seconds | null;
  readonly findings: readonly Finding[];
}

/** What the recording in these files says of itself; what cannot be read is missing. */
export async function readEnds(segments: readonly Segment[]): Promise<Ends> {
  const seen = new Seen();
  try {
    const [first] = segments;
    const last = segments.at(-1);
    if (first === undefined || last === undefined) return seen;
    await readLines(first.path, first.gzipped, (line) => {
      seen.line(line);
      return false;
    });
    if (last.gzipped) await seen.compressed(last);
    else for (const line of await lastLines(last.path)) seen.tailLine(line);
    seen.last();
  } catch {
    // Unreadable for this user, or gone: nothing is known of it.
  }
  return seen;
}

class Seen implements Ends {
  start: RunStart | null = null;
  end: RunEnd | null = null;
  lastAt: Seconds | null = null;
  readonly findings: Finding[] = [];
  #lastLine: Buffer | null = null;
  readonly #decode = otlpDecoder({
    observation: (one) => {
      this.lastAt = Math.max(this.lastAt ?? 0, 'to' in one ? one.to : one.at);
    },
    metric: () => {},
    runStart: (start) => (this.start ??= start),
    runEnd: (end) => (this.end = end),
    finding: (finding) => this.findings.push(finding),
    unreadable: () => {},
  });

  line(line: Buffer): void {
    if (isOverNested(line)) return;
    try {
      this.#decode(JSON.parse(line.toString('utf8')));
    } catch {
      // Cut, or no JSON: the reader of the whole recording counts it.
    }
  }

  tailLine(line: Buffer): void {
    if (WORTH_PARSING.some((name) => line.includes(name))) this.line(line);
    else if (line.length > 0) this.#lastLine = line;
  }

  async compressed({ path, gzipped }: Segment): Promise<void> {
    await readLines(path, gzipped, (line) => {
      this.tailLine(line);
      return true;
    });
  }

  /** How far one goes that has no end. */
  last(): void {
    if (this.end === null && this.#lastLine !== null) this.line(this.#lastLine);
  }
}

/** The whole lines in the last part of a file. */
async function lastLines(path: string): Promise<readonly Buffer[]> {
  const handle = await openOutside(path);
  try {
    const { size } = await handle.stat();
    const from = Math.max(0, size - TAIL);
    const { buffer, bytesRead } = await handle.read(
      Buffer.alloc(size - from),
      0,
      size - from,
      from,
    );
    const tail = buffer.subarray(0, bytesRead);
    const lines: Buffer[] = [];
    let begin = from === 0 ? 0 : tail.indexOf(NEWLINE) + 1;
    for (let at = tail.indexOf(NEWLINE, begin); at >= 0; at = tail.indexOf(NEWLINE, begin)) {
      lines.push(tail.subarray(begin, at));
      begin = at + 1;
    }
    return lines;
  } finally {
    await handle.close();
  }
}
