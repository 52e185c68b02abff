import type { Seconds } from '../../core/types.ts';
import type { EngineBatch } from '../contracts.ts';
import type { LoadPlan } from '../plan.ts';
import type { DriverEvent } from './driver.ts';
import type { PackedHistogram } from './histogram-pack.ts';
import type { PackedRecords } from './record-pack.ts';

/** What the main thread and its workers say to each other. */

/** What a worker begins with. */
export interface WorkerSetup {
  readonly plan: LoadPlan;
  readonly worker: number;
  readonly workers: number;
  readonly cells: SharedArrayBuffer;
  /** Unix time minus CLOCK_MONOTONIC, the same in all workers. */
  readonly wallOffset: Seconds;
}

export type ToWorker =
  | {
      readonly kind: 'stage';
      readonly stage: number;
      readonly at: Seconds;
      readonly firstUnit: number;
    }
  /** Sent at `at`: how late it is looked at is the delay of the worker's loop. */
  | { readonly kind: 'ping'; readonly at: Seconds }
  /** Send nothing new. */
  | { readonly kind: 'stop' }
  /** End what is under way. */
  | { readonly kind: 'abort' }
  /** Every stage is over: hand over the rest and end. */
  | { readonly kind: 'finish' };

export interface PackedBatch extends Omit<EngineBatch<PackedHistogram>, 'requests'> {
  readonly requests: PackedRecords;
  readonly histograms: Float64Array<ArrayBuffer>;
}

export type FromWorker =
  | { readonly kind: 'ready' }
  | { readonly kind: 'event'; readonly event: DriverEvent }
  | { readonly kind: 'batch'; readonly batch: PackedBatch }
  | { readonly kind: 'ended' };
