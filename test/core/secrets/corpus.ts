import { readFileSync } from 'node:fs';
import { join } from 'node:path';

/**
 * The corpus of credentials and of what only looks like some: forms.txt and harmless.txt, which say
 * how they are written.
 */

/** What credentials look like: the forms must hold for each. */
const CREDENTIALS = ['S3cretValue9', 'k8Zt2Qm4Lw9XcVb7', 'Hunter2hunter2'] as const;

/** One form with one credential in it. */
export interface Form {
  /** As the file has it. */
  readonly line: string;
  /** A text, or a list of arguments. */
  readonly input: string | readonly string[];
  /** What must not be left. */
  readonly gone: readonly string[];
  /** Words that must be left, in this order. */
  readonly stays: readonly string[];
}

function linesOf(name: string): readonly string[] {
  return readFileSync(join(import.meta.dirname, name), 'utf8')
    .split('\n')
    .filter((line) => line !== '' && !line.startsWith('# '));
}

/** A credential, and its parts that stand nowhere else: none must be left over. */
function piecesOf(credential: string, text: string): readonly string[] {
  const around = text.replace(/«[^»]*»/g, '');
  const parts = credential.split(/[@/,\s'\\]+/).filter((part) => part.length > 1);
  return [credential, ...parts.filter((part) => !around.includes(part))];
}

/** Every form with every credential. */
export function forms(): readonly Form[] {
  return linesOf('forms.txt').flatMap((line) => {
    const [text = '', stays = ''] = line.split(' ⇒ ');
    const own = [...text.matchAll(/«([^»]+)»/g)].flatMap(([, one = '']) => piecesOf(one, text));
    const isOwnAlone = !text.includes('«»');
    return CREDENTIALS.slice(0, isOwnAlone ? 1 : undefined).map((credential) => {
      const filled = text
        .replaceAll('«»', credential)
        .replace(/«([^»]+)»/g, '$1')
        .replaceAll('⏎', '\n');
      return {
        line,
        input: filled.startsWith('¦ ') ? filled.slice(2).split(' ¦ ') : filled,
        gone: isOwnAlone ? own : [credential, ...own],
        stays: stays.split(' ').filter((word) => word !== ''),
      };
    });
  });
}

/** Lines to be left as they are; a command line also as its arguments. */
export function harmless(): readonly (string | readonly string[])[] {
  return linesOf('harmless.txt').flatMap((line) =>
    line.startsWith('$ ') ? [line.slice(2), line.slice(2).split(' ')] : [line],
  );
}
