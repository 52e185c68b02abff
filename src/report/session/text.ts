import type { Fields, Session } from '../../core/session.ts';
import { outside, pad } from '../layout.ts';
import { Page } from '../page.ts';
import type { Surface } from '../style.ts';
import type { SessionRow } from './document.ts';

/** Sessions for people; pure. */

const AT = 2;
const LABEL_WIDTH = 14;
/** Below a line of the list. */
const BELOW = 5;
const VALUE_LIMIT = 600;
/** Of a value with more lines; the file has them all. */
const LINES_SHOWN = 6;

/** The sessions with a number each, what is being done in them, and how to go on. */
export function renderSessionList(
  rows: readonly SessionRow[],
  { surface, folder }: { readonly surface: Surface; readonly folder: string },
): string {
  const page = new Page(surface);
  const { style } = page;
  if (rows.length === 0) {
    page.paragraph(`No active debug sessions in ${outside(folder, 400)}.`);
    page.gap();
    page.verbatim("start      trace session start 'what is wrong'");
    return page.toString();
  }
  const slugs = Math.max(...rows.map(({ session }) => Math.min(40, session.slug.length)));
  for (const [i, { session }] of rows.entries()) {
    // To the minute, which fits into 80 columns.
    const updated = outside(session.updated.slice(0, 16).replace('T', ' '), 16) || '-';
    page.row(
      `${pad(String(i + 1), 3, 'left')}  ${style.bold(pad(outside(session.slug, 40), slugs))}  ${pad(session.status, 21)}  ${updated}`,
    );
    const note = (label: string, text: string) =>
      page.field(label, outside(text, 300) || '-', { at: BELOW, labelWidth: LABEL_WIDTH });
    note('hypothesis', session.focus.hypothesis);
    note('next action', session.focus.nextAction);
  }
  page.gap();
  page.verbatim(`continue   trace session continue ${outside(rows[0]?.session.slug ?? '', 60)}`);
  return page.toString();
}

/** Everything that a session holds, by section, with counts. */
export function renderSessionStatus(row: SessionRow, surface: Surface): string {
  const page = new Page(surface);
  const { session } = row;
  writeHead(page, row);
  writeFocus(page, session);
  writeFields(page, 'Symptoms', session.symptoms);
  section(page, `Hypotheses (${session.hypotheses.length})`);
  for (const one of session.hypotheses.toSorted((a, b) => a.rank - b.rank)) {
    page.paragraph(
      `${one.rank}. ${page.style.bold(outside(one.id, 12))} ${one.state}  ${outside(one.claim, VALUE_LIMIT)}`,
      { first: AT, rest: AT + 3 },
    );
  }
  writeCounts(page, session);
  writeFields(page, 'Diagnosis', session.diagnosis);
  writeFields(page, 'Resolution', session.resolution);
  return page.toString();
}

/** Where a session stands and what comes next. */
export function renderSessionContinue(
  row: SessionRow,
  { surface, next }: { readonly surface: Surface; readonly next: readonly string[] },
): string {
  const page = new Page(surface);
  writeHead(page, row);
  writeFocus(page, row.session);
  writeCounts(page, row.session);
  writeNext(page, next);
  return page.toString();
}

/** What was done, and what comes next. */
export function renderDone(
  lines: readonly string[],
  { surface, next }: { readonly surface: Surface; readonly next: readonly string[] },
): string {
  const page = new Page(surface);
  for (const line of lines) {
    // A path is copied.
    if (line.startsWith('/')) page.verbatim(line);
    else page.paragraph(line, { first: 0, rest: AT });
  }
  if (next.length > 0) writeNext(page, next);
  return page.toString();
}

function writeHead(page: Page, { session, path }: SessionRow): void {
  page.paragraph(`${page.style.bold(outside(session.slug, 60))}  ${session.status}`, {
    first: 0,
    rest: AT,
  });
  const field = fieldOf(page);
  field('file', path);
  if (session.goal === 'find_root_cause_only') field('goal', 'the root cause alone');
  if (session.updated !== '') field('updated', session.updated);
  // The first line: a pasted report is pages long.
  field('trigger', session.trigger.trimStart().split('\n')[0] ?? '');
}

function writeFocus(page: Page, { focus }: Session): void {
  section(page, 'Current focus');
  const field = fieldOf(page);
  field('hypothesis', focus.hypothesis || '-');
  if (focus.test !== '') field('test', focus.test);
  if (focus.expecting !== '') field('expecting', focus.expecting);
  field('next action', focus.nextAction || '-');
}

function writeCounts(page: Page, session: Session): void {
  section(page, 'So far');
  const field = fieldOf(page);
  const { evidence, eliminated, attempts } = session;
  field('evidence', String(evidence.length));
  const last = evidence.at(-1);
  if (last !== undefined) field('last', `${last.checked}: ${last.found}`);
  field('eliminated', String(eliminated.length));
  if (attempts.length > 0) {
    const failed = attempts.filter(({ outcome }) => outcome === 'failed').length;
    field('attempts', `${attempts.length}, ${failed} failed`);
  }
}

function writeFields(page: Page, title: string, fields: Fields): void {
  const given = Object.entries(fields).filter(([, value]) => value !== '' && value !== '[]');
  if (given.length === 0) return;
  section(page, title);
  const field = fieldOf(page);
  for (const [key, value] of given) field(outside(key.replaceAll('_', ' '), 13), value);
}

function writeNext(page: Page, next: readonly string[]): void {
  page.gap();
  for (const [i, line] of next.entries())
    page.field(i === 0 ? 'next' : '', line, { at: 0, labelWidth: 11 });
}

function section(page: Page, title: string): void {
  page.gap();
  page.row(page.style.bold(title));
}

/** A value of several lines keeps them: the first ones, and how many there are behind. */
const fieldOf =
  (page: Page) =>
  (label: string, text: string): void => {
    const lines = text.split('\n').filter((line) => line.trim() !== '');
    const shown = lines.slice(0, LINES_SHOWN);
    const more = lines.length - shown.length;
    const rows = more > 0 ? [...shown, `… ${more} more ${more === 1 ? 'line' : 'lines'}`] : shown;
    for (const [i, row] of rows.entries())
      page.field(i === 0 ? label : '', outside(row, VALUE_LIMIT), {
        at: AT,
        labelWidth: LABEL_WIDTH,
      });
  };
