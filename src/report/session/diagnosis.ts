import type { Session } from '../../core/session.ts';
import { outside } from '../layout.ts';
import { Page } from '../page.ts';
import { decodeList } from '../../core/session-value.ts';
import type { Surface } from '../style.ts';

/** What a person approves before anything is changed, and the blocks that end a session; pure. */

const AT = 2;
const LIMIT = 2000;
const LABEL_WIDTH = 13;

const PARTS: readonly {
  readonly title: string;
  readonly key: string;
  readonly isOfFix: boolean;
}[] = [
  { title: 'Symptom', key: 'symptom', isOfFix: false },
  { title: 'Root Cause', key: 'root_cause', isOfFix: false },
  { title: 'Why This Happens', key: 'why_this_happens', isOfFix: false },
  { title: 'Proposed Fix', key: 'proposed_fix', isOfFix: true },
  { title: 'What This Fix Will Change', key: 'what_this_fix_will_change', isOfFix: true },
  { title: 'What This Fix Will NOT Fix', key: 'what_this_fix_will_not_fix', isOfFix: true },
];

const QUESTIONS = [
  'Does this match what you see?',
  'Is a targeted fix right, or should it be broader?',
  'Is what it changes beside that acceptable?',
] as const;

/** The diagnosis as it is presented. Without a fix where none is wanted. */
export function renderDiagnosis(session: Session, surface: Surface): string {
  const page = new Page(surface);
  const { style } = page;
  const isOfCauseAlone = session.goal === 'find_root_cause_only';
  const { diagnosis } = session;
  page.row(
    style.bold(
      `${isOfCauseAlone ? 'ROOT CAUSE REPORT' : 'DIAGNOSIS'}  ${outside(session.slug, 60)}`,
    ),
  );
  for (const { title, key, isOfFix } of PARTS) {
    if (isOfFix && isOfCauseAlone) continue;
    page.gap();
    page.row(style.bold(title));
    for (const line of linesOf(diagnosis[key] ?? ''))
      page.paragraph(outside(line, LIMIT), { first: AT, rest: AT });
    if (key === 'root_cause')
      for (const place of decodeList(diagnosis['places'] ?? ''))
        page.verbatim(`  ${outside(place, 400)}`);
    if (key === 'proposed_fix')
      for (const file of decodeList(diagnosis['files'] ?? ''))
        page.verbatim(`  ${outside(file, 400)}`);
  }
  page.gap();
  if (isOfCauseAlone) {
    page.verbatim('next       trace session resolve --confirmed-by <who>');
    return page.toString();
  }
  page.row(style.bold('Before it is changed'));
  for (const question of QUESTIONS) page.paragraph(`- ${question}`, { first: AT, rest: AT + 2 });
  page.gap();
  page.verbatim('next       trace session approve, or trace session reject --because …');
  return page.toString();
}

/** Each line of a text that somebody wrote, without empty ones. */
function linesOf(text: string): readonly string[] {
  return text
    .slice(0, LIMIT)
    .split('\n')
    .filter((line) => line.trim() !== '');
}

/** The compact block that closes a session. */
export function renderClosing(
  session: Session,
  { surface, path, outcome }: { surface: Surface; path: string; outcome: 'COMPLETE' | 'ABANDONED' },
): string {
  const page = new Page(surface);
  page.row(page.style.bold(`DEBUG SESSION ${outcome}`));
  const field = (label: string, text: string): void =>
    page.field(label, outside(linesOf(text).join(' '), LIMIT) || '-', {
      at: 0,
      labelWidth: LABEL_WIDTH,
    });
  const { hypotheses, attempts, resolution, tdd } = session;
  field('Session:', session.slug);
  field('Root cause:', resolution['root_cause'] ?? '');
  if (outcome === 'COMPLETE') field('Fix:', resolution['fix'] ?? '');
  else field('Because:', resolution['abandoned_because'] ?? '');
  field('Cycles:', `${hypotheses.length} hypotheses, ${attempts.length} attempts`);
  field(
    'TDD:',
    tdd['test_file'] === undefined ? 'no' : `${tdd['test_file']} (${tdd['status'] ?? '-'})`,
  );
  page.verbatim(`File:        ${outside(path, 4096)}`);
  return page.toString();
}
