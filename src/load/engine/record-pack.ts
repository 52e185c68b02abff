import type { RequestError, RequestRecord } from '../../core/load-types.ts';
import type { LoadPlan } from '../plan.ts';
import { requestSpanId } from '../trace-context.ts';
import type { Slot } from './slot.ts';

/**
 * Records on their way between threads: numbers in one array that is handed over, not copied. Structured clone writes the name of every
 * property of every object: 34 of them cost 10 times as much.
 */

/** In the order of a row; null travels as NaN. */
const COLUMNS = [
  'index',
  'stage',
  'warmup',
  'scheduledAt',
  'startedAt',
  'sentAt',
  'connectedAt',
  'firstByteAt',
  'firstOutputAt',
  'lastOutputAt',
  'endedAt',
  'longestGap',
  'outputs',
  'inputTokens',
  'outputTokens',
  'cachedTokens',
  'reasoningTokens',
  'status',
  'resends',
  'bytesSent',
  'bytesReceived',
  'session',
  'turn',
  'error',
  'finishReason',
  'promptClass',
] as const;
const WIDTH = COLUMNS.length;
/** Rows that there is room for at first. */
const FIRST_ROOM = 64;

/** Requests that ended, in the order in which they did. */
export interface PackedRecords {
  readonly count: number;
  readonly numbers: Float64Array<ArrayBuffer>;
  readonly responseIds: readonly (string | null)[];
  /** What many share, named by position. */
  readonly errors: readonly RequestError[];
  readonly words: readonly string[];
}

/** Gathers records in one thread. */
export class RecordPack {
  #count = 0;
  #numbers: Float64Array<ArrayBuffer> = new Float64Array(FIRST_ROOM * WIDTH);
  #responseIds: (string | null)[] = [];
  #errors: RequestError[] = [];
  #words = new Map<string, number>();

  get count(): number {
    return this.#count;
  }

  add(slot: Slot): void {
    const { request, stage } = slot;
    if (request === null || stage === null) return;
    const from = this.#count * WIDTH;
    if (from === this.#numbers.length) {
      const larger = new Float64Array(2 * this.#numbers.length);
      larger.set(this.#numbers);
      this.#numbers = larger;
    }
    const row = this.#numbers;
    const hasOutput = slot.outputs > 0;
    row[from] = request.index;
    row[from + 1] = stage.index;
    row[from + 2] = slot.warmup ? 1 : 0;
    row[from + 3] = slot.scheduledAt;
    row[from + 4] = slot.startedAt;
    row[from + 5] = slot.sentAt;
    row[from + 6] = slot.connectedAt ?? Number.NaN;
    row[from + 7] = slot.firstByteAt ?? Number.NaN;
    row[from + 8] = hasOutput ? slot.firstOutputAt : Number.NaN;
    row[from + 9] = hasOutput ? slot.lastOutputAt : Number.NaN;
    row[from + 10] = slot.endedAt;
    row[from + 11] = slot.longestGap;
    row[from + 12] = slot.outputs;
    row[from + 13] = slot.inputTokens ?? Number.NaN;
    row[from + 14] = slot.outputTokens ?? Number.NaN;
    row[from + 15] = slot.cachedTokens ?? Number.NaN;
    row[from + 16] = slot.reasoningTokens ?? Number.NaN;
    row[from + 17] = slot.status ?? Number.NaN;
    row[from + 18] = slot.resends;
    row[from + 19] = slot.bytesSent;
    row[from + 20] = slot.bytesReceived;
    row[from + 21] = request.session ?? Number.NaN;
    row[from + 22] = request.turn ?? Number.NaN;
    row[from + 23] = slot.error === null ? Number.NaN : this.#errors.push(slot.error) - 1;
    row[from + 24] = slot.finishReason === null ? Number.NaN : this.#word(slot.finishReason);
    row[from + 25] = this.#word(request.promptClass);
    this.#responseIds.push(slot.responseId);
    this.#count++;
  }

  /** What was gathered; then starts anew. */
  take(): PackedRecords {
    const packed: PackedRecords = {
      count: this.#count,
      numbers: this.#numbers.slice(0, this.#count * WIDTH),
      responseIds: this.#responseIds,
      errors: this.#errors,
      words: [...this.#words.keys()],
    };
    this.#count = 0;
    this.#responseIds = [];
    this.#errors = [];
    this.#words = new Map();
    return packed;
  }

  #word(text: string): number {
    const known = this.#words.get(text);
    if (known !== undefined) return known;
    const number = this.#words.size;
    this.#words.set(text, number);
    return number;
  }
}

/** The records again, in another thread. */
export function unpackRecords(
  packed: PackedRecords,
  { worker, trace, part }: { readonly worker: number } & Pick<LoadPlan, 'trace' | 'part'>,
): RequestRecord[] {
  const { numbers, errors, words, responseIds } = packed;
  const number = (at: number): number => numbers[at] ?? 0;
  const maybe = (at: number): number | null => {
    const value = numbers[at] ?? Number.NaN;
    return Number.isNaN(value) ? null : value;
  };
  return Array.from({ length: packed.count }, (_, i) => {
    const row = i * WIDTH;
    const index = number(row);
    return {
      index,
      worker,
      stage: number(row + 1),
      warmup: number(row + 2) === 1,
      scheduledAt: number(row + 3),
      startedAt: number(row + 4),
      sentAt: number(row + 5),
      connectedAt: maybe(row + 6),
      firstByteAt: maybe(row + 7),
      firstOutputAt: maybe(row + 8),
      lastOutputAt: maybe(row + 9),
      endedAt: number(row + 10),
      longestGap: number(row + 11),
      outputs: number(row + 12),
      inputTokens: maybe(row + 13),
      outputTokens: maybe(row + 14),
      cachedTokens: maybe(row + 15),
      reasoningTokens: maybe(row + 16),
      status: maybe(row + 17),
      error: errors[number(row + 23)] ?? null,
      finishReason: words[number(row + 24)] ?? null,
      responseId: responseIds[i] ?? null,
      resends: number(row + 18),
      bytesSent: number(row + 19),
      bytesReceived: number(row + 20),
      spanId: trace === null ? '' : requestSpanId(trace.traceId, part.index, index),
      promptClass: words[number(row + 25)] ?? '',
      session: maybe(row + 21),
      turn: maybe(row + 22),
    };
  });
}
