import type { StageResult } from '../../core/load-types.ts';
import type { Ratio } from '../../core/types.ts';
import { formatNumber } from '../../core/units.ts';
import type { LoadExtent } from './extent.ts';

/** A difference below this is the chat template and the tokenizer; more changes what was measured. */
const WORTH_SAYING: Ratio = 0.1;
/** A chat template adds about so many tokens, whatever the prompt: no reason to speak of a short one. */
const TEMPLATE_TOKENS = 40;

/** Where prompts or answers were not as long as they were asked to be, by the server's own count: sentences for stderr. */
export function lengthNotes(
  { inputTokens, outputTokens }: LoadExtent,
  { tokens, requests }: StageResult,
): readonly string[] {
  const notes: string[] = [];
  if (requests.ok === 0 || tokens.counted < requests.ok) return notes;
  const input = tokens.input / requests.ok;
  if (
    inputTokens !== null &&
    input > 0 &&
    Math.abs(input - inputTokens) > Math.max(TEMPLATE_TOKENS, inputTokens * WORTH_SAYING)
  ) {
    notes.push(
      `prompts had ${Math.round(input)} tokens on average by the server's count, ${Math.round(inputTokens)} were asked for`,
    );
  }
  const output = tokens.output / requests.ok;
  if (outputTokens !== null && output < outputTokens * (1 - WORTH_SAYING)) {
    notes.push(
      `answers had ${formatNumber(output)} tokens on average, ${Math.round(outputTokens)} were allowed: --ignore-eos makes them as long, where the server knows it`,
    );
  }
  return notes;
}
