import { ATTR } from '../core/semconv.ts';
import type { Attributes, StackSample } from '../core/types.ts';

/** Spans and events name stacks by id; each stack is told once a run. */

/** The ids of the stacks that a span or an event refers to. */
export function stackIdsIn(attributes: Attributes | undefined): readonly string[] {
  const shares = attributes?.[ATTR.stackShares];
  const weighted = Array.isArray(shares) ? shares.map((share) => String(share).split('=')[0]) : [];
  return [attributes?.[ATTR.stackId], ...weighted].filter((id) => typeof id === 'string');
}

/** The stacks of a run that goes on for days, for whoever stores a part of it; beyond the limit those not referred to for longest go. */
export class KnownStacks {
  readonly #limit: number;
  readonly #stacks = new Map<string, StackSample>();

  constructor(limit: number) {
    this.#limit = limit;
  }

  add(stack: StackSample): void {
    this.#stacks.delete(stack.id);
    this.#stacks.set(stack.id, stack);
    if (this.#stacks.size <= this.#limit) return;
    for (const oldest of this.#stacks.keys()) {
      this.#stacks.delete(oldest);
      return;
    }
  }

  /** The stacks that a span or an event refers to, as far as they are known. */
  referredBy(attributes: Attributes | undefined): readonly StackSample[] {
    const found = stackIdsIn(attributes).flatMap((id) => this.#stacks.get(id) ?? []);
    for (const stack of found) this.add(stack);
    return found;
  }
}
