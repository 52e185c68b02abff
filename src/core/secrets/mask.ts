import { maskAddresses } from './addresses.ts';
import { MASK } from './mark.ts';
import { headerOf, HEADERS } from './name-reader.ts';
import { strengthOf } from './names.ts';
import { maskPairs } from './pairs.ts';
import { maskedValue, maskProgramOptions, ProgramWords } from './programs.ts';
import { maskedHeaderValue } from './schemes.ts';
import { maskPrivateKeys, maskShapes } from './shapes.ts';
import { isCredential } from './values.ts';

/**
 * The one place that says what looks like a credential. Whatever shows or stores a command line, an
 * address, a header or a line of output asks it first. It is a net: what has neither a telling name
 * nor a known shape passes (test/core/secrets holds the forms that are known).
 */

/**
 * A line, or lines, with everything that looks like a credential replaced by `***`. Takes time in
 * proportion to the length.
 */
export function maskText(text: string): string {
  return mask(text, false);
}

/**
 * The arguments of a command with everything that looks like a credential replaced by `***`. Here
 * it is known where each begins and ends, so that less is guessed than in a line.
 */
export function maskArguments(commandLine: readonly string[]): readonly string[] {
  const words = new ProgramWords();
  let expected: ((value: string) => string | null) | null = null;
  return commandLine.map((argument, index) => {
    const masked: string | null = expected?.(argument) ?? null;
    expected = null;
    if (masked !== null) return masked;
    const met = words.take(argument);
    if (met !== null && met.at !== null) {
      const value = maskedValue(argument.slice(met.at), met.kind);
      return value === null ? argument : argument.slice(0, met.at) + value;
    }
    const before = commandLine[index - 1] ?? '';
    expected =
      met === null ? valueBehind(argument, before) : (value) => maskedValue(value, met.kind);
    // What a shell is to run is many words, and not one.
    return mask(argument, !/^-[a-z]*c$/.test(before));
  });
}

function mask(text: string, isWhole: boolean): string {
  const line = maskAddresses(maskPrivateKeys(text));
  // One word has no options.
  const words = /[\s"'`,]/.test(line) ? maskProgramOptions(line) : line;
  return maskShapes(maskPairs(words, isWhole));
}

/** How the argument behind a telling one is masked; null where it need not be. */
function valueBehind(argument: string, before: string): ((value: string) => string | null) | null {
  const [, dashes = '', name = ''] = /^(--?)?([A-Za-z_][\w.-]{0,120})$/.exec(argument) ?? [];
  const isFlag = dashes !== '';
  if (!isFlag && before !== 'set') return null;
  const header = headerOf(name);
  const strength = header === 'cookie' ? HEADERS.cookie : strengthOf(name);
  if (strength === null && header === null) return null;
  return (value) => {
    if (/^--[A-Za-z]|^-[A-Za-z]$|^--$/.test(value)) return null;
    if (strength === null) return maskedHeaderValue(value, header ?? '');
    return isCredential(value, { strength, isFlag }) ? MASK : null;
  };
}
