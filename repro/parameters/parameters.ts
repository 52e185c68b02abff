import type { Hypothesis } from '../../src/core/hypothesis.ts';
import type { Seconds } from '../../src/core/types.ts';

/** What a reproduction runs with: `parameters.json` beside its script, which reads it itself. Names are those of the file. */

export const SCHEMA_VERSION = 1;

export type Language = 'python' | 'node' | 'shell';
export type OracleKind =
  | 'exception'
  | 'cross-talk'
  | 'lost-update'
  | 'same-alone'
  | 'growth'
  | 'no-progress'
  | 'head-of-line'
  | 'transactions'
  | 'script';

export const ORACLE_KINDS: readonly OracleKind[] = [
  'exception',
  'cross-talk',
  'lost-update',
  'same-alone',
  'growth',
  'no-progress',
  'head-of-line',
  'transactions',
  'script',
];

/** What decides whether an attempt failed, with its own options. */
export interface Oracle {
  readonly kind: OracleKind;
  readonly [option: string]: Json | undefined;
}

export type Json =
  | null
  | boolean
  | number
  | string
  | readonly Json[]
  | { readonly [key: string]: Json };

/** A function that is called concurrently. */
export interface CallOrigin {
  /** `package.module:callable`, or `./file.mjs#export` relative to the reproduction's folder. */
  readonly target: string;
  /** Where modules are imported from, relative to the reproduction's folder; Python only. */
  readonly path?: string;
  /** Positional arguments, one list for each attempt; gone through in a circle. */
  readonly args: readonly (readonly Json[])[];
  /** Called once before the attempts, written as `target`; what it returns, unless nothing, is the first argument of each call. */
  readonly setup?: string;
}

/** One request of a recorded run. */
export interface TrafficRequest {
  /** After the first request. */
  readonly offset_s: Seconds;
  readonly method: string;
  readonly path: string;
  readonly headers: Readonly<Record<string, string>>;
  readonly body: string | null;
}

/** Requests that are sent again. */
export interface TrafficOrigin {
  /** `http://127.0.0.1:8000`, without a path's end. */
  readonly base_url: string;
  /** Whether bodies are those that were recorded; absent: they are made up. */
  readonly bodies?: 'kept' | 'some-kept' | 'made-up';
  readonly requests: readonly TrafficRequest[];
}

/** The hypothesis that a reproduction tests. */
export type TestedHypothesis = Pick<Hypothesis, 'id' | 'mechanism' | 'claim'>;

export interface ReproParameters {
  readonly schema_version: typeof SCHEMA_VERSION;
  readonly language: Language;
  /** The script's name in the folder. */
  readonly script: string;
  readonly origin: 'call' | 'traffic';
  readonly hypothesis: TestedHypothesis | null;
  readonly call?: CallOrigin;
  readonly traffic?: TrafficOrigin;
  readonly oracle: Oracle;
  /** How many attempts one trial makes. */
  readonly attempts: number;
  /** How many of them run at the same time. */
  readonly concurrency: number;
  /** What one trial may take. */
  readonly timeout_s: Seconds;
  readonly seed: number;
  /** Versions that were there when it was written. */
  readonly packages: Readonly<Record<string, string>>;
  readonly runtime: { readonly name: string; readonly version: string };
}
