import type { Slo } from '../../core/load-types.ts';

/** Objectives in one line, in base units, to tell whether two runs had the same. */
export function objectivesText(slos: readonly Slo[]): string {
  return slos.map(({ metric, limit }) => `${metric}<${limit} s`).join(', ') || 'none';
}
