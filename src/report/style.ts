/** What the text is shown on. Decided once per run; renderers only follow it. */
export interface Surface {
  readonly color: boolean;
  /** Columns. */
  readonly width: number;
  /** Whether characters outside ASCII can be shown. */
  readonly unicode: boolean;
}

/** What {@link decideSurface} goes by. */
export interface SurfaceFacts {
  readonly env: Readonly<Record<string, string | undefined>>;
  readonly isTTY: boolean;
  readonly columns: number | undefined;
  /** `--no-color` was given. */
  readonly noColor: boolean;
}

/** Width when nobody says otherwise: the classic terminal, and what mails and issue trackers hold. */
const DEFAULT_WIDTH = 80;
/** Below 40 columns nothing can be laid out; above 120 lines are no longer read in one go. */
const WIDTH_BOUNDS = { least: 40, most: 120 } as const;

/** Colour, width and character set of an output. */
export function decideSurface(facts: SurfaceFacts): Surface {
  return {
    color: !facts.noColor && decideColor(facts),
    width: decideWidth(facts),
    unicode: decideUnicode(facts.env),
  };
}

/** FORCE_COLOR over NO_COLOR, as Node itself decides; then TERM, then whether it is a terminal. */
function decideColor({ env, isTTY }: SurfaceFacts): boolean {
  const force = env['FORCE_COLOR'];
  if (force !== undefined) return force !== '0' && force !== 'false';
  // https://no-color.org: present and not empty.
  if ((env['NO_COLOR'] ?? '') !== '') return false;
  return isRewritable({ isTTY }, env);
}

/**
 * Whether a line that is shown can be replaced by the next one: on a terminal that obeys escapes.
 */
export function isRewritable(
  { isTTY }: Pick<SurfaceFacts, 'isTTY'>,
  env: SurfaceFacts['env'],
): boolean {
  return isTTY && env['TERM'] !== 'dumb';
}

function decideWidth({ env, columns }: SurfaceFacts): number {
  const told = columns ?? Number(env['COLUMNS'] ?? Number.NaN);
  if (!Number.isInteger(told) || told <= 0) return DEFAULT_WIDTH;
  return Math.min(WIDTH_BOUNDS.most, Math.max(WIDTH_BOUNDS.least, told));
}

/** The locale's character set, in the order POSIX reads it. No locale at all is a container's default: UTF-8 these days. */
function decideUnicode(env: SurfaceFacts['env']): boolean {
  const locale = [env['LC_ALL'], env['LC_CTYPE'], env['LANG']].find((one) => (one ?? '') !== '');
  return locale === undefined || /utf-?8/i.test(locale);
}

/** Marks text. */
export type Mark = (text: string) => string;

/** The marks of a surface; without colour each is the identity. */
export interface Style {
  readonly bold: Mark;
  readonly dim: Mark;
  readonly red: Mark;
  readonly yellow: Mark;
  readonly green: Mark;
  readonly cyan: Mark;
}

/** Marks as SGR sequences (ECMA-48 §8.3.117). */
export function createStyle(color: boolean): Style {
  const mark = (on: number, off: number): Mark => {
    return (text) => (color && text !== '' ? `\u001b[${on}m${text}\u001b[${off}m` : text);
  };
  return {
    bold: mark(1, 22),
    dim: mark(2, 22),
    red: mark(31, 39),
    yellow: mark(33, 39),
    green: mark(32, 39),
    cyan: mark(36, 39),
  };
}
