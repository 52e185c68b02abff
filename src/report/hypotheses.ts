import type { Clue, Hypothesis } from '../core/hypothesis.ts';
import { hypothesisDocument } from './hypothesis-document.ts';
import { outside } from './layout.ts';
import { escapeUnsafe } from './json.ts';
import { Page } from './page.ts';
import type { Surface } from './style.ts';

/** Rival explanations as text and as JSON; pure. */

const AT = 4;
const LABEL_WIDTH = 10;
/** Raised when a reader of the old form would misread the new one. */
const SCHEMA_VERSION = 1;

/** What is shown, and of which recording. */
export interface Explained {
  readonly recording: string;
  /** Of the finding that is explained, as the report says it; null where there is none. */
  readonly finding: { readonly id: string; readonly summary: string } | null;
  readonly hypotheses: readonly Hypothesis[];
}

/** The rivals for people, the likeliest first: claim, what speaks for and against it, what would tell, and the command that does. */
export function renderHypotheses({ finding, hypotheses }: Explained, surface: Surface): string {
  const page = new Page(surface);
  const { style } = page;
  if (finding === null || hypotheses.length === 0) {
    page.paragraph('Nothing was found that needs an explanation.');
    return page.toString();
  }
  page.paragraph(`${style.bold(outside(finding.id, 12))}  ${outside(finding.summary, 600)}`, {
    first: 0,
    rest: AT,
  });
  for (const one of hypotheses) {
    page.gap();
    writeHypothesis(page, one);
  }
  page.gap();
  page.paragraph(
    'Ranked by the sum of the weights (logarithms of odds) and of how common each is; docs/hypotheses.md.',
  );
  return page.toString();
}

function writeHypothesis(page: Page, one: Hypothesis): void {
  const { style } = page;
  const mark = { open: style.cyan, supported: style.red, refuted: style.dim }[one.status];
  page.paragraph(
    `${style.bold(one.id)}  ${mark(one.status)}  ${outside(one.mechanism, 60)}, ${signed(one.score)}`,
    { first: 0, rest: AT },
  );
  page.paragraph(outside(one.claim, 800), { first: AT, rest: AT });
  const field = (label: string, text: string) =>
    page.field(label, text, { at: AT, labelWidth: LABEL_WIDTH });
  const clues = (label: string, some: readonly Clue[]) =>
    some.forEach((clue, i) => {
      field(i === 0 ? label : '', `${signed(clue.weight)}  ${outside(clue.summary, 400)}`);
    });
  clues('for', one.for);
  clues('against', one.against);
  field('confirms', one.predicts.confirming);
  field('refutes', one.predicts.refuting);
  page.verbatim(`${' '.repeat(AT)}${style.dim('test')}      ${outside(one.test, 4096)}`);
}

/** With its sign and one digit: more would claim to know. */
function signed(weight: number): string {
  return `${weight < 0 ? '-' : '+'}${Math.abs(weight).toFixed(1)}`;
}

/** The same as one JSON document (docs/schema/hypotheses.schema.json). */
export function renderHypothesesJson(
  { recording, finding, hypotheses }: Explained,
  toolVersion: string,
): string {
  const document = {
    schema_version: SCHEMA_VERSION,
    tool: { name: 'tracewright', version: toolVersion },
    command: 'hypotheses',
    recording,
    finding: finding?.id ?? null,
    hypotheses: hypotheses.map(hypothesisDocument),
  };
  return `${escapeUnsafe(JSON.stringify(document, null, 2))}\n`;
}

/** One line of a report: which explanations there are, and where they are weighed; null where there are none. */
export function hypothesesLine(hypotheses: readonly Hypothesis[]): string | null {
  const [first, ...others] = hypotheses;
  if (first === undefined) return null;
  const rest = others.map(({ mechanism }) => mechanism).join(', ');
  return `${first.mechanism} (${first.id})${rest === '' ? '' : `, then ${rest}`}`;
}
