import { type FileHandle, stat } from 'node:fs/promises';
import { basename } from 'node:path';
import { StringDecoder } from 'node:string_decoder';
import { setTimeout as sleep } from 'node:timers/promises';
import type { DeadlockReport } from '../../src/core/database-look.ts';
import { errorCode } from '../../src/core/errors.ts';
import { DATABASE_SNAPSHOT } from '../../src/core/semconv-database.ts';
import type {
  Availability,
  Bytes,
  Gap,
  Observation,
  ObserveContext,
  Seconds,
} from '../../src/core/types.ts';
import { formatBytes } from '../../src/core/units.ts';
import { openOutside } from '../../src/platform/outside-file.ts';
import { DeadlockReader } from './deadlock-log.ts';

/** A log of PostgreSQL: its end as it was when the run began, then what is added to it. */

const NAME = 'postgres-log';
const EVERY: Seconds = 1;
/** Of a log that is there already, the last of it; an hour of a busy server. */
const LOOK_BACK: Bytes = 16 * 2 ** 20;
/** In one look: a server that writes more than this a second is not followed, which is said. */
const READ_LIMIT: Bytes = 16 * 2 ** 20;
const CHUNK: Bytes = 64 * 2 ** 10;
/** Reports of one run. The last of an old log, the first of those that come. */
const REPORTS = 200;
const LINE_LIMIT = 64 * 2 ** 10;

/** What {@link LogWatch} follows. */
export class LogWatch {
  readonly name: string = NAME;
  readonly #path: string;
  readonly #reader: DeadlockReader;
  #decoder = new StringDecoder('utf8');
  #rest = '';
  #position = 0;
  #inode = 0;

  constructor(path: string) {
    this.#path = path;
    this.#reader = new DeadlockReader(basename(path));
  }

  async probe(): Promise<Availability> {
    try {
      const file = await openOutside(this.#path);
      const { size } = await file.stat();
      await file.close();
      const detail = `${formatBytes(size)} are there`;
      return { available: true, detail };
    } catch (error) {
      return { available: false, reason: `cannot be read: ${errorCode(error)}`, remedy: null };
    }
  }

  async *observe({ signal, clock }: ObserveContext): AsyncIterable<Observation> {
    let missing: Omit<Gap, 'to'> | null = null;
    let isOld = true;
    let count = 0;
    for (;;) {
      const isLast = signal.aborted;
      const from = clock.now();
      try {
        const { reports, skipped } = await this.#look(isOld);
        if (missing !== null) yield { ...missing, to: from };
        missing = null;
        const wanted = isOld ? reports.slice(-REPORTS) : reports.slice(0, REPORTS - count);
        if (!isOld) count += wanted.length;
        for (const body of wanted)
          yield { kind: 'snapshot', at: clock.now(), of: DATABASE_SNAPSHOT.deadlock, body };
        if (skipped > 0 && !isOld) {
          const detail = `${skipped} bytes of the log came too fast`;
          yield { kind: 'gap', from, to: clock.now(), collector: NAME, reason: 'dropped', detail };
        }
        isOld = false;
      } catch (error) {
        const detail = `the log cannot be read: ${errorCode(error)}`;
        missing ??= { kind: 'gap', from, collector: NAME, reason: 'failed', detail };
      }
      if (isLast) break;
      await sleep(EVERY * 1e3, undefined, { signal }).catch(() => {});
    }
    if (missing !== null) yield { ...missing, to: clock.now() };
  }

  /** What was added since the last look; from the beginning where the file is another one now, or was emptied. */
  async #look(
    isOld: boolean,
  ): Promise<{ readonly reports: readonly DeadlockReport[]; readonly skipped: Bytes }> {
    const { ino, size } = await stat(this.#path);
    const isAnother = ino !== this.#inode || size < this.#position;
    const known = isAnother ? 0 : this.#position;
    const limit = isOld ? LOOK_BACK : READ_LIMIT;
    const start = Math.max(known, size - limit);
    const skipped = start - known;
    if (isAnother || skipped > 0) {
      this.#rest = '';
      this.#decoder = new StringDecoder('utf8');
    }
    this.#inode = ino;
    const file = await openOutside(this.#path);
    try {
      const reports = await this.#read(file, { start, end: size, isOld });
      // A report is one write of the server: what follows it comes later, or never.
      const left = this.#reader.end(isOld);
      return { reports: left === null ? reports : [...reports, left], skipped };
    } finally {
      await file.close();
    }
  }

  async #read(
    file: FileHandle,
    {
      start,
      end,
      isOld,
    }: { readonly start: number; readonly end: number; readonly isOld: boolean },
  ): Promise<readonly DeadlockReport[]> {
    const reports: DeadlockReport[] = [];
    const chunk = Buffer.allocUnsafe(CHUNK);
    let position = start;
    while (position < end) {
      const wanted = Math.min(CHUNK, end - position);
      const { bytesRead } = await file.read(chunk, 0, wanted, position);
      if (bytesRead === 0) break;
      position += bytesRead;
      const lines = (this.#rest + this.#decoder.write(chunk.subarray(0, bytesRead))).split('\n');
      this.#rest = (lines.pop() ?? '').slice(0, LINE_LIMIT);
      for (const line of lines) {
        const report = this.#reader.line(line.replace(/\r$/, ''), isOld);
        if (report !== null) reports.push(report);
        // Of an old log the last ones are wanted.
        if (reports.length > 2 * REPORTS) reports.splice(0, REPORTS);
      }
    }
    this.#position = position;
    return reports;
  }
}
