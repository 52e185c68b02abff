import { maskText } from '../../core/secrets/mask.ts';
import type { TextOutput } from './command.ts';

/**
 * An output for what is said beside the result. Messages quote what was typed, what a server
 * answered and what a program printed: whoever writes one need not think of credentials.
 */
export function maskedOutput(output: TextOutput): TextOutput {
  return {
    get isTTY() {
      return output.isTTY;
    },
    get columns() {
      return output.columns;
    },
    write: (text) => output.write(maskText(text)),
  };
}
