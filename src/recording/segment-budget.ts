import { unlink } from 'node:fs/promises';
import { join } from 'node:path';
import type { Bytes } from '../core/types.ts';
import { downsampleSegments } from './downsample-segment.ts';
import type { Owner } from '../platform/ownership.ts';
import type { WrittenFile } from './files.ts';
import { segmentName } from './format.ts';
import type { EncodeContext } from '../core/otlp-encode.ts';

/** Keeps a recording below its size: its older files are thinned out, a step at a time, and when none can be any more, two become one. */

/** Of finished files the last stay as they are as long as others can be thinned out: what happened lately is what is asked about. */
const RECENT = 2;
/** Into so many windows a segment is divided, of each of which one reading is kept, one step after the other: of two hours every 8, 64, 512 s. */
const STEPS: readonly number[] = [1024, 128, 16];
/** And one that was made of others. Of a day that is every 512 s. */
const JOINED = 256;

/** What finished segments may take. */
export interface BudgetOptions {
  /** The folder held open, as a path. */
  readonly directory: string;
  readonly owner: Owner | null;
  readonly bytes: Bytes;
  readonly context: EncodeContext;
}

interface Finished {
  /** The number in its name; `through` is that of the last one that went into it. */
  readonly index: number;
  readonly through: number;
  readonly file: WrittenFile;
  /** How often it was thinned out. */
  readonly steps: number;
}

/** What is to become one file. */
interface Step {
  readonly from: readonly [Finished, ...Finished[]];
  readonly windows: number;
}

export class FinishedSegments {
  readonly #options: BudgetOptions;
  #segments: readonly Finished[] = [];

  constructor(options: BudgetOptions) {
    this.#options = options;
  }

  /** Takes up a compressed segment, then thins out until all of them fit. Throws what the disk says; nothing is lost then. */
  async add(index: number, file: WrittenFile): Promise<void> {
    const added = { index, through: index, file, steps: 0 };
    this.#segments = [...this.#segments, added].toSorted((a, b) => a.index - b.index);
    while (this.#segments.reduce((sum, one) => sum + one.file.size, 0) > this.#options.bytes) {
      const step = nextStep(this.#segments);
      if (step === null) return;
      await this.#take(step);
    }
  }

  async #take({ from, windows }: Step): Promise<void> {
    const { directory, owner, context } = this.#options;
    const pathOf = ({ index }: Finished): string => join(directory, `${segmentName(index)}.gz`);
    const [first, ...others] = from;
    const through = Math.max(...from.map((one) => one.through));
    const written = from.map((one) => one.file);
    const file = await downsampleSegments(from.map(pathOf), {
      windows,
      through,
      owner,
      context,
      written,
    });
    // From here on a reader knows by the first that the others are in it.
    for (const other of others) await unlink(pathOf(other));
    const kept = this.#segments.filter((one) => !from.includes(one));
    const steps = others.length > 0 ? STEPS.length : first.steps + 1;
    this.#segments = [...kept, { index: first.index, through, file, steps }].toSorted(
      (a, b) => a.index - b.index,
    );
  }
}

/** The oldest of those thinned out least; when all are as thin as they get, the two neighbours that are smallest together. */
function nextStep(segments: readonly Finished[]): Step | null {
  const older = segments.length > RECENT ? segments.slice(0, -RECENT) : segments;
  return thinOut(older) ?? joinTwo(older) ?? thinOut(segments) ?? joinTwo(segments);
}

function thinOut(segments: readonly Finished[]): Step | null {
  for (const [step, windows] of STEPS.entries()) {
    const next = segments.find(({ steps }) => steps <= step);
    if (next !== undefined) return { from: [next], windows };
  }
  return null;
}

function joinTwo(segments: readonly Finished[]): Step | null {
  const pairs = segments.slice(1).map((second, i) => {
    const first = segments[i] ?? second;
    return { from: [first, second] as const, size: first.file.size + second.file.size };
  });
  const [smallest] = pairs.toSorted((a, b) => a.size - b.size);
  return smallest === undefined ? null : { from: smallest.from, windows: JOINED };
}
