// Text of others without its escape sequences.
import ansiRegex from 'ansi-regex';

export async function strip(semicolons) {
  return `\u001B[${';'.repeat(semicolons)}`.replace(ansiRegex(), '').length;
}
