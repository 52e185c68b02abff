import { asArray, asObject, asString } from './otlp-values.ts';
import type { MissedCondition } from './tasks.ts';
import type { Frame } from './types.ts';

/** The body of a `missed-wake-up` snapshot: a task that waits although what it waits for was there in several readings. */
export interface MissedLook extends MissedCondition {
  readonly pid: number;
  /** Name of the task. Untrusted. */
  readonly task: string;
  /** Innermost first. */
  readonly frames: readonly Frame[];
}

/** A snapshot as it comes back from a recording; undefined for what is none. */
export function toMissedLook(body: unknown): MissedLook | undefined {
  const look = asObject(body);
  const pid = look?.['pid'];
  const items = look?.['items'];
  if (look === undefined || typeof pid !== 'number' || typeof items !== 'number') return undefined;
  return {
    pid,
    task: asString(look['task'], '?'),
    condition: asString(look['condition']),
    expression: asString(look['expression'], '?'),
    items,
    frames: asArray(look['frames']).flatMap((one) => {
      const frame = asObject(one);
      const line = frame?.['line'];
      if (frame === undefined) return [];
      return [
        {
          function: asString(frame['function'], '?'),
          file: asString(frame['file'], '?'),
          line: typeof line === 'number' && Number.isInteger(line) ? line : null,
        },
      ];
    }),
  };
}
