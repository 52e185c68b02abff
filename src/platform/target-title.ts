import { printable } from '../core/text.ts';
import { readCommandLine } from './proc.ts';

/** How a process is called where people read it: its command line with credentials masked and unsafe characters escaped. */

const MASK = '***';

const SECRET_WORD =
  '(?:api[-_]?key|access[-_]?key|token|secret|passw(?:or)?d|passphrase|credentials?|auth(?:orization)?)';
/** `--api-key`, `--hf-token`, `-Dpassword`: an option whose value is the next argument or follows `=`. */
const SECRET_OPTION = new RegExp(`^(--?[\\w.-]*${SECRET_WORD})(=.*)?$`, 'is');
/** `OPENAI_API_KEY=…`, `password:…`, and `?token=…` within an address. */
const SECRET_ASSIGNMENT = new RegExp(
  `((?:^|[?&;,\\s])[\\w.-]*${SECRET_WORD}\\s*[=:]\\s*)[^&;,\\s]+`,
  'gi',
);
/** The password of `scheme://user:password@host`. */
const USERINFO = /(\b[a-z][a-z0-9+.-]*:\/\/[^\s/:@]*:)[^\s/@]+@/gi;
/** Credentials known by their shape: OpenAI, Hugging Face, GitHub, Slack, AWS, JSON web tokens, and what follows `Bearer`. */
const KNOWN_SHAPE =
  /\b(?:sk-[\w-]{8,}|hf_\w{8,}|gh[pousr]_\w{8,}|github_pat_\w{8,}|xox[abpr]-[\w-]{8,}|AKIA[0-9A-Z]{12,}|eyJ[\w-]{8,}\.[\w-]+\.[\w-]*)|(?<=\bBearer\s)\S+/g;

/** The arguments with everything that looks like a credential replaced by `***`. */
export function maskCredentials(commandLine: readonly string[]): readonly string[] {
  return commandLine.map((argument, index) => {
    const option = SECRET_OPTION.exec(argument);
    if (option !== null) return option[2] === undefined ? argument : `${option[1]}=${MASK}`;
    const before = SECRET_OPTION.exec(commandLine[index - 1] ?? '');
    if (before !== null && before[2] === undefined && !argument.startsWith('-')) return MASK;
    return argument
      .replace(USERINFO, `$1${MASK}@`)
      .replace(SECRET_ASSIGNMENT, `$1${MASK}`)
      .replace(KNOWN_SHAPE, MASK);
  });
}

/** Titles longer than this are cut: a line of a report or a table. */
const TITLE_LIMIT = 160;

/** The title of a process, safe to print and to store; `comm` in brackets where it has no command line, as ps(1) does. */
export function titleOf(pid: number, comm: string): string {
  const commandLine = maskCredentials(readCommandLine(pid));
  return commandLine.length === 0
    ? `[${printable(comm, 16)}]`
    : printable(commandLine.join(' '), TITLE_LIMIT);
}
