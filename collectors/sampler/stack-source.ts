import type { Frame, Seconds } from '../../src/core/types.ts';

/** Another place to get a block's stacks from, asked after the block: V8's profiler through an open inspector. */
export interface StackSource {
  /** Stacks between two CLOCK_MONOTONIC moments with the seconds they stand for; empty when it saw none. */
  stacksDuring(
    from: Seconds,
    to: Seconds,
  ): Promise<readonly { readonly frames: readonly Frame[]; readonly weight: Seconds }[]>;
  /** What it is and what it does to the target, for the report. */
  readonly description: string;
  /** Stretches in which it may have held the target's loop itself, CLOCK_MONOTONIC. */
  readonly pauses: readonly {
    readonly from: Seconds;
    readonly to: Seconds;
    /** `heap`: what it held of it, it collected garbage. */
    readonly what?: string;
  }[];
  /** All the time in which it may have held the loop, the shortest holds too, which explain no block. */
  readonly held: Seconds;
  /** Why it has no more stacks to give; null while it has. */
  readonly failure: string | null;
  close(): Promise<void>;
}
