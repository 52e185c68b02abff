import { documentationOf } from '../../core/catalogue/catalogue.ts';
import type { CatalogueEntry } from '../../core/catalogue/entry.ts';
import { escapeUnsafe } from '../json.ts';
import { displayWidth, pad } from '../layout.ts';
import { Page } from '../page.ts';
import type { Surface } from '../style.ts';
import { type Marks, PARTS, type PartName, plainText, PLAIN, sectionOf } from './section.ts';

/** What `trace explain` says; pure. `page` is the text of docs/detectors.md. */

/** Raised when a reader of the old form would misread the new one. */
const SCHEMA_VERSION = 1;
const AT = 2;
/** A longer name of a mechanism leaves no room for what it is, and has a line of its own. */
const NAME_LIMIT = 28;

/** Every finding on a line: its code, its kind, what it is. */
export function renderFindingList(entries: readonly CatalogueEntry[], surface: Surface): string {
  const page = new Page(surface);
  const width = Math.max(...entries.map(({ kind }) => kind.length));
  const { bold } = page.style;
  for (const { code, kind, title } of entries)
    page.row(`${bold(code)}  ${pad(kind, width)}  ${title}`);
  page.gap();
  page.paragraph('trace explain <code or kind> says how one is decided and what to do.');
  return page.toString();
}

/** Findings one below the other, each with all that is known of it. */
export function renderExplanations(
  entries: readonly CatalogueEntry[],
  { page: text, surface }: { readonly page: string; readonly surface: Surface },
): string {
  const page = new Page(surface);
  for (const [i, entry] of entries.entries()) {
    if (i > 0) page.row(page.style.dim('-'.repeat(page.width)));
    page.gap();
    writeExplanation(page, entry, { text, hasColor: surface.color });
    page.gap();
  }
  return `${page.toString().trimEnd()}\n`;
}

function writeExplanation(
  page: Page,
  entry: CatalogueEntry,
  { text, hasColor }: { readonly text: string; readonly hasColor: boolean },
): void {
  const { style } = page;
  const { code, kind, title, means, mechanisms, severity } = entry;
  page.paragraph(`${style.bold(code)}  ${style.bold(kind)}: ${title}`);
  page.gap();
  page.paragraph(means);
  const names = Object.keys(mechanisms);
  if (names.length > 0) {
    heading(page, names.length === 1 ? 'Mechanism' : 'Mechanisms');
    writeMechanisms(page, mechanisms);
  }
  heading(page, 'Severity');
  page.paragraph(capitalised(severity), { first: AT, rest: AT });
  const section = sectionOf(text, code);
  const marks: Marks = hasColor ? { strong: style.bold, code: style.cyan } : PLAIN;
  for (const name of PARTS) {
    if (section[name].length === 0) continue;
    heading(page, name);
    for (const block of section[name]) {
      const shown = plainText(block.text, marks);
      if (block.kind === 'paragraph') page.paragraph(shown, { first: AT, rest: AT });
      else page.paragraph(`- ${shown}`, { first: AT, rest: AT + 2 });
    }
  }
  page.gap();
  page.verbatim(style.dim(documentationOf(entry)));
}

function heading(page: Page, text: string): void {
  page.gap();
  page.row(page.style.bold(text));
}

function writeMechanisms(page: Page, mechanisms: CatalogueEntry['mechanisms']): void {
  const names = Object.keys(mechanisms);
  const short = names.map(displayWidth).filter((width) => width <= NAME_LIMIT);
  const labelWidth = Math.max(0, ...short) + 2;
  for (const [name, what] of Object.entries(mechanisms)) {
    if (displayWidth(name) > NAME_LIMIT) {
      page.paragraph(name, { first: AT, rest: AT });
      page.field('', what, { at: AT, labelWidth: Math.max(labelWidth, AT) });
    } else page.field(name, what, { at: AT, labelWidth });
  }
}

/** The same for scripts (docs/schema/explain.schema.json). */
export function renderExplanationJson(
  entries: readonly CatalogueEntry[],
  { page, toolVersion }: { readonly page: string; readonly toolVersion: string },
): string {
  const findings = entries.map((entry) => {
    const section = sectionOf(page, entry.code);
    const part = (name: PartName) => section[name].map(({ text }) => plainText(text));
    return {
      code: entry.code,
      kind: entry.kind,
      title: entry.title,
      means: entry.means,
      mechanisms: Object.entries(entry.mechanisms).map(([name, means]) => ({ name, means })),
      severity: entry.severity,
      decided_by: part('Decided by'),
      numbers: part('Numbers'),
      blind: part('Blind'),
      what_to_do: part('What to do'),
      more: part('More'),
      documentation: documentationOf(entry),
    };
  });
  const tool = { name: 'tracewright', version: toolVersion };
  const whole = { schema_version: SCHEMA_VERSION, tool, command: 'explain', findings };
  return `${escapeUnsafe(JSON.stringify(whole, null, 2))}\n`;
}

function capitalised(text: string): string {
  return text.charAt(0).toUpperCase() + text.slice(1);
}
