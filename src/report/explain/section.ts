/**
 * The section of a finding in docs/detectors.md. What the catalogue says stands there too; behind
 * it come parts, each begun by its label in bold type: **Decided by.** They have paragraphs and
 * lists and nothing else, which is what a terminal shows well; a test holds them to it.
 */

/** The parts, as their labels call them; the last may be left out. */
export const PARTS = ['Decided by', 'Numbers', 'Blind', 'What to do', 'More'] as const;
export type PartName = (typeof PARTS)[number];

/** A piece of text in the page's Markdown, on one line. */
export interface Block {
  readonly kind: 'paragraph' | 'item';
  readonly text: string;
}

export type Section = Readonly<Record<PartName, readonly Block[]>>;

/** The parts of the section whose heading begins with the code; empty where they are not there. */
export function sectionOf(page: string, code: string): Section {
  const section: Record<PartName, Block[]> = {
    'Decided by': [],
    Numbers: [],
    Blind: [],
    'What to do': [],
    More: [],
  };
  let part: PartName | null = null;
  for (const block of blocksOf(bodyOf(page, code))) {
    const label = PARTS.find((name) => block.text.startsWith(`**${name}.**`));
    part = label ?? part;
    if (part === null) continue;
    const text = label === undefined ? block.text : block.text.slice(`**${label}.**`.length).trim();
    if (text !== '') section[part].push({ kind: block.kind, text });
  }
  return section;
}

/** What stands below the heading of a code, up to the next heading. */
export function bodyOf(page: string, code: string): string {
  const [, below = ''] = page.split(new RegExp(`^#{2,6} ${code} .*$`, 'm'));
  return below.split(/^#{1,6} /m)[0] ?? '';
}

function blocksOf(body: string): readonly Block[] {
  return body
    .split(/\n\s*\n|\n(?=- )/)
    .map((text) => text.replaceAll(/\s*\n\s*/g, ' ').trim())
    .filter((text) => text !== '')
    .map((text) =>
      text.startsWith('- ') ? { kind: 'item', text: text.slice(2) } : { kind: 'paragraph', text },
    );
}

/** How marked text is shown. */
export interface Marks {
  readonly strong: (text: string) => string;
  readonly code: (text: string) => string;
}

/** What reads like a word of the sentence (`with`, `idle in transaction`) is put in quotes. */
export const PLAIN: Marks = {
  strong: (text) => text,
  code: (text) => (/^[a-z][a-z -]*$/.test(text) ? `'${text}'` : text),
};

// In this order: what is code is taken as it is.
const INLINE = /`([^`]+)`|\*\*([^*]+)\*\*|\[([^\]]+)\]\(([^)\s]+)\)/g;

/** One line of the page without its Markdown; a link says in parentheses where it leads. */
export function plainText(text: string, marks: Marks = PLAIN): string {
  return text.replaceAll(
    INLINE,
    (_, code?: string, strong?: string, name?: string, target?: string) => {
      if (code !== undefined) return marks.code(code);
      if (strong !== undefined) return marks.strong(plainText(strong));
      return `${plainText(name ?? '', marks)} (${placeOf(target ?? '')})`;
    },
  );
}

/** A target as it is called from the root of the package. */
function placeOf(target: string): string {
  if (/^[a-z]+:/.test(target)) return target;
  if (target.startsWith('#')) return `docs/detectors.md${target}`;
  return target.startsWith('../') ? target.slice('../'.length) : `docs/${target}`;
}
