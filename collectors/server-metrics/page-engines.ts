import { ENGINE_LABELS, REPLICA_LABELS } from '../../src/core/server-names.ts';
import type { PageSample } from '../../src/platform/prometheus.ts';

/** Several engines and ranks on one page: which numbers add up, and which say the same again. */

/** Values that every series of a server has when it has one kind of engine only. */
const USUAL: readonly string[] = [
  'unified',
  'aggregated',
  'trtllm',
  'undefined',
  'null',
  'None',
  '',
];

/** The engine or rank that a series is of, by the values of its labels; empty where none tells. */
export function engineOf(labels: PageSample['labels']): string {
  return ENGINE_LABELS.flatMap((label) => {
    const value = labels[label];
    return value === undefined || USUAL.includes(value) ? [] : [value];
  }).join(' ');
}

/**
 * One number for the series of one engine: the sum over models and reasons; of ranks that share the work, the one that says most. A share is
 * that of the fullest.
 */
export function valueOfEngine(samples: readonly PageSample[], isShare: boolean): number {
  if (isShare) return Math.max(...samples.map(({ value }) => value));
  const replicas = new Map<string, number>();
  for (const { labels, value } of samples) {
    const replica = REPLICA_LABELS.map((label) => labels[label] ?? '').join('\n');
    replicas.set(replica, (replicas.get(replica) ?? 0) + value);
  }
  return Math.max(...replicas.values());
}
