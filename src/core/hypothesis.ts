import type { Finding } from './types.ts';

/** A rival explanation of what was found: what would confirm it, what would refute it, and how to find out. */

/** Something seen that speaks for or against an explanation. */
export interface Clue {
  /** What was seen, in words. */
  readonly summary: string;
  /** Natural logarithm of the odds it adds (0.7 is twice as likely); negative speaks against. Judgement, not measurement: docs/hypotheses.md. */
  readonly weight: number;
}

/** `supported` and `refuted` are for what a test of it said (a verdict of `trace repro`); evidence alone leaves it open. */
export type HypothesisStatus = 'open' | 'supported' | 'refuted';

/** Every explanation that there is, by family: growth, loops, what is stuck, requests, devices. */
export const HYPOTHESIS_MECHANISMS = [
  'leak',
  'warm-up',
  'load-rises',
  'gc-sawtooth',
  'allocator',
  'blocking-call',
  'computation',
  'lock',
  'garbage-collection',
  'starved',
  'loop-without-wait',
  'busy',
  'lock-order',
  'self-lock',
  'pool-exhaustion',
  'lost-wakeup',
  'dependency',
  'slow-not-stuck',
  'saturation',
  'client',
  'blocked-loop',
  'race',
  'crash',
  'ageing',
  'host-bound',
  'throttled',
  'little-work',
  'memory-limit',
] as const;

export type HypothesisMechanism = (typeof HYPOTHESIS_MECHANISMS)[number];

/** Null for one that this version does not know: a file of a newer one, or no mechanism at all. */
export function hypothesisMechanism(text: unknown): HypothesisMechanism | null {
  return HYPOTHESIS_MECHANISMS.find((one) => one === text) ?? null;
}

export interface Hypothesis {
  /** `H1`, `H2`, … by rank within one recording. */
  readonly id: string;
  /** 1 is the likeliest. */
  readonly rank: number;
  readonly mechanism: HypothesisMechanism;
  /** One sentence that can be wrong. */
  readonly claim: string;
  readonly predicts: { readonly confirming: string; readonly refuting: string };
  /** A command that tells it from its rivals. */
  readonly test: string;
  readonly for: readonly Clue[];
  readonly against: readonly Clue[];
  /** Sum of the weights and of what the mechanism has to begin with. */
  readonly score: number;
  readonly status: HypothesisStatus;
  /** Ids of the findings it explains. */
  readonly findings: readonly Finding['id'][];
}
