import type { PromptClass } from '../plan.ts';
import { datasetError, openRecords, type Records } from './lines.ts';
import { pick, randomOf, STREAM } from './random.ts';
import { readRecord, type RecordedBody, type RecordedPrompt } from './record.ts';

type FilePrompts = Extract<PromptClass['prompts'], { kind: 'file' }>;

/** As many records are read before the run, so that a mistake in them is said at once; all of a smaller file. */
const CHECKED = 20_000;

/** A data set, by index: in order and again from the beginning, or by the seed. */
export class Dataset {
  readonly #path: string;
  readonly #order: FilePrompts['order'];
  readonly #seed: number;
  readonly #records: Records;

  constructor(prompts: FilePrompts, seed: number) {
    this.#path = prompts.path;
    this.#order = prompts.order;
    this.#seed = seed;
    this.#records = openRecords(prompts.path);
  }

  /** The record for the `index`th request or conversation; null behind the end of data that are taken once. */
  at(index: number): RecordedPrompt | RecordedBody | null {
    const { count } = this.#records;
    if (this.#order === 'once' && index >= count) return null;
    return this.#record(
      this.#order === 'random'
        ? pick(randomOf(this.#seed, STREAM.record, index), count)
        : index % count,
    );
  }

  /** Reads ahead: throws a TraceError with the line of the first mistake. */
  check(turns: number): void {
    let last = 0;
    for (let which = 0; which < Math.min(this.#records.count, CHECKED); which++) {
      const record = this.#record(which);
      const fail = (what: string) => datasetError(this.#path, this.#records.at(which).line, what);
      // A replay needs to know when.
      if (this.#order === 'once') {
        if (record.due === null) throw fail('has no timestamp to be replayed at');
        if (record.due < last) throw fail('has a timestamp before that of the line above');
        last = record.due;
      }
      if (turns > 1 && (record.kind === 'body' || record.turns.length < turns)) {
        throw fail(
          `holds ${record.kind === 'body' ? 1 : record.turns.length} turns, --turns asks for ${turns}`,
        );
      }
    }
  }

  #record(which: number): RecordedPrompt | RecordedBody {
    return readRecord(this.#path, this.#records.at(which), this.#seed);
  }

  close(): void {
    this.#records.close();
  }
}
