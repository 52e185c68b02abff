import type { WeightedStack } from '../core/place.ts';
import { ATTR } from '../core/semconv.ts';
import type { RecordingView, Span } from '../core/types.ts';
import { textAttribute, weightedStacks } from './attributes.ts';

/** Another thread, which had the GIL for most of a block. */
export interface Holder {
  readonly thread: string;
  /** Where the loop was meanwhile. */
  readonly waiting: readonly WeightedStack[];
}

/** The thread that had the GIL longest in a block that is its doing, with its stacks; null for other blocks. */
export function holderOf(
  view: RecordingView,
  span: Span,
): { readonly thread: string; readonly stacks: readonly WeightedStack[] } | null {
  if (textAttribute(span.attributes, ATTR.mechanism) !== 'gil') return null;
  const shares = span.attributes[ATTR.holderStacks];
  const names = span.attributes[ATTR.holderThreads];
  if (!Array.isArray(shares) || !Array.isArray(names)) return null;
  const byThread = new Map<string, string[]>();
  for (const [i, share] of shares.entries()) {
    const name = String(names[i] ?? '');
    byThread.set(name, [...(byThread.get(name) ?? []), String(share)]);
  }
  const found = [...byThread].map(([thread, list]) => ({
    thread,
    stacks: weightedStacks(view, { [ATTR.holderStacks]: list }, ATTR.holderStacks),
  }));
  const held = ({ stacks }: { stacks: readonly WeightedStack[] }): number =>
    stacks.reduce((sum, { weight }) => sum + weight, 0);
  return found.sort((a, b) => held(b) - held(a))[0] ?? null;
}

/** As it stands in a sentence. */
export const threadText = ({ thread }: Holder): string =>
  thread === 'main' ? 'the main thread' : `thread ${thread}`;
