import type { WeightedStack } from '../core/place.ts';
import { ATTR } from '../core/semconv.ts';
import type { Attributes, RecordingView } from '../core/types.ts';

/** Reading what collectors wrote into attributes. Recordings are untrusted: a value of the wrong kind counts as absent. */

export function numberAttribute(attributes: Attributes | undefined, key: string): number | null {
  const value = attributes?.[key];
  return typeof value === 'number' && Number.isFinite(value) ? value : null;
}

export function textAttribute(attributes: Attributes | undefined, key: string): string | null {
  const value = attributes?.[key];
  return value === undefined ? null : String(value);
}

/** The stacks behind `tracewright.block.stack_shares`, a list of `<stack id>=<weight>`; entries that say nothing are left out. */
export function weightedStacks(
  view: RecordingView,
  attributes: Attributes | undefined,
  key: string = ATTR.stackShares,
): readonly WeightedStack[] {
  const list = attributes?.[key];
  if (!Array.isArray(list)) return [];
  return list.flatMap((entry: string) => {
    const [id = '', amount = ''] = entry.split('=');
    const frames = view.stack(id);
    const weight = Number(amount);
    return frames === undefined || !(weight > 0) ? [] : [{ frames, weight }];
  });
}
