import type { PreparedRequest, RequestSource } from '../contracts.ts';
import type { Slot } from './slot.ts';

/** The next turn of the conversation that a request belongs to; null when it was the last, or failed: then there is nothing to answer to. */
export function nextTurn(slot: Slot, source: RequestSource, turns: number): PreparedRequest | null {
  const { request, error } = slot;
  if (turns === 1 || request === null || error !== null) return null;
  const next = request.index + 1;
  return next % turns === 0 ? null : source.prepare(next);
}
