import { setTimeout as sleep } from 'node:timers/promises';
import type { Clock, Seconds } from '../../src/core/types.ts';
import { formatSeconds } from '../../src/core/units.ts';
import { GPU_LIMIT, queryArguments, reasonIn, refusedField } from './catalog.ts';
import { type Fault, faultIn } from './faults.ts';
import { KNOWN_FIELDS } from './fields.ts';
import type { GpuLimits } from './limits.ts';
import { type GpuReading, readingOf } from './reading.ts';
import type { Smi } from './smi.ts';
import { CsvTable } from './table.ts';

/** One nvidia-smi that prints a line for each GPU again and again, for as long as it does. */

/** Lines without a row between them: it prints something else. */
const NONSENSE_LIMIT = 200;

export interface StreamReader {
  /** `isFirst`: the first line of this nvidia-smi about that GPU. */
  onReading(reading: GpuReading, isFirst: boolean): void;
  onFault(fault: Fault): void;
  /** A line that is neither row nor header nor a known message. */
  onNonsense(): void;
}

/** How a stream ended. */
export interface StreamEnd {
  readonly why: string;
  /** It said nothing for too long, or nothing that could be read, and was killed. */
  readonly isHung: boolean;
  /** A property that it does not know after all. */
  readonly refused: string | null;
  readonly rows: number;
}

/** Resolves when it ends, is silent for too long, or `signal` says so (then null). Never longer than that. */
export async function readStream(
  smi: Smi,
  fields: readonly string[],
  {
    limits,
    clock,
    signal,
    reader,
  }: {
    readonly limits: GpuLimits;
    readonly clock: Clock;
    readonly signal: AbortSignal;
    readonly reader: StreamReader;
  },
): Promise<StreamEnd | null> {
  const watch = new StreamWatch(reader, clock.mono());
  const woken = new AbortController();
  const either = AbortSignal.any([signal, woken.signal]);
  const stream = smi.stream(
    [...queryArguments(fields), '-lms', String(Math.round(limits.every * 1e3))],
    {
      onLine: (line) => watch.take(line, clock.mono()),
      onEnd: (why) => {
        watch.over ??= why;
        woken.abort();
      },
    },
  );
  if (stream === null) return watch.result('nvidia-smi could not be started', true);
  for (;;) {
    await sleep(limits.every * 5e2, undefined, { signal: either }).catch(() => {});
    if (watch.over !== null)
      return watch.result(`nvidia-smi ended: ${watch.message ?? watch.over}`, false);
    if (signal.aborted) {
      await stream.end();
      return null;
    }
    const allowed = watch.rows === 0 ? Math.max(limits.answer, limits.silence) : limits.silence;
    const isSilent = clock.mono() - watch.lastRow > allowed;
    if (!isSilent && watch.sinceRow <= NONSENSE_LIMIT) continue;
    await stream.end();
    return watch.result(
      watch.sinceRow > 0
        ? 'nvidia-smi printed what is no table, and was killed'
        : `nvidia-smi printed nothing for ${formatSeconds(allowed)} and was killed: the driver hangs or is very slow`,
      true,
    );
  }
}

class StreamWatch {
  /** Why it ended by itself; null while it goes on. */
  over: string | null = null;
  /** What it said before it ended, where that was a sentence. */
  message: string | null = null;
  lastRow: Seconds;
  rows = 0;
  /** Lines since the last row that were none. */
  sinceRow = 0;
  readonly #reader: StreamReader;
  readonly #table = new CsvTable(KNOWN_FIELDS);
  readonly #seen = new Set<string>();
  #refused: string | null = null;

  constructor(reader: StreamReader, now: Seconds) {
    this.#reader = reader;
    this.lastRow = now;
  }

  take(line: string | null, now: Seconds): void {
    if (line !== null && line.trim() === '') return;
    const row = line === null ? null : this.#table.take(line);
    if (row === 'header') return;
    const reading = row === null ? null : readingOf(row);
    if (reading !== null) {
      this.lastRow = now;
      this.rows++;
      this.sinceRow = 0;
      this.#reader.onReading(reading, !this.#seen.has(reading.key));
      if (this.#seen.size < GPU_LIMIT) this.#seen.add(reading.key);
      if (reading.fault !== null)
        this.#reader.onFault({
          fault: /reset/i.test(reading.fault) ? 'reset-required' : 'lost',
          busId: reading.key,
          xid: null,
          text: reading.fault,
        });
      return;
    }
    const fault = line === null ? null : faultIn(line);
    if (fault !== null) this.#reader.onFault(fault);
    this.#refused ??= line === null ? null : refusedField(line);
    this.message = (line === null ? null : reasonIn(line)) ?? this.message;
    this.sinceRow += line === null ? NONSENSE_LIMIT + 1 : 1;
    if (fault === null && this.#refused === null) this.#reader.onNonsense();
  }

  result(why: string, isHung: boolean): StreamEnd {
    return { why, isHung, refused: this.#refused, rows: this.rows };
  }
}
