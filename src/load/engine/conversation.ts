import type { Slot } from './slot.ts';
import type { Prepare, ReadyRequest } from './supply.ts';

/** The next turn of the conversation that a request belongs to; null when it was the last, or failed: then there is nothing to answer to. */
export function nextTurn(slot: Slot, prepare: Prepare, turns: number): ReadyRequest | null {
  const { request, error } = slot;
  if (turns === 1 || request === null || error !== null) return null;
  const next = request.index + 1;
  return next % turns === 0 ? null : prepare(next);
}
