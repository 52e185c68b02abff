import type { Check, CheckStatus } from '../core/check.ts';
import { outside, pad } from './layout.ts';
import { Page } from './page.ts';
import type { Surface } from './style.ts';

/** What `trace doctor` says; pure. */

export interface Diagnosis {
  readonly toolVersion: string;
  readonly machine: readonly Check[];
  /** Null when no pid was asked about. */
  readonly target: { readonly pid: number; readonly checks: readonly Check[] } | null;
}

/** Raised when a reader of the old form would misread the new one. */
const SCHEMA_VERSION = 1;
const STATUS_WIDTH = 9;

/** The checks for people: a line each, its remedy below it, whole, so that it can be copied. */
export function renderDoctor(diagnosis: Diagnosis, surface: Surface): string {
  const page = new Page(surface);
  writeChecks(page, 'This machine', diagnosis.machine);
  const { target } = diagnosis;
  if (target !== null) {
    page.gap();
    writeChecks(page, `Process ${target.pid}`, target.checks);
  }
  page.gap();
  page.paragraph(summaryOf([...diagnosis.machine, ...(target?.checks ?? [])]));
  return page.toString();
}

function writeChecks(page: Page, title: string, checks: readonly Check[]): void {
  const { style } = page;
  const marks = { ok: style.green, limited: style.yellow, missing: style.red };
  const nameWidth = Math.max(...checks.map(({ name }) => name.length)) + 2;
  page.paragraph(style.bold(title));
  for (const { name, status, detail, remedy } of checks) {
    const label = `${pad(marks[status](status), STATUS_WIDTH)}${name}`;
    const indent = { at: 2, labelWidth: STATUS_WIDTH + nameWidth };
    page.field(label, outside(detail, 400), indent);
    for (const line of remedy?.split('\n') ?? [])
      page.verbatim(`${' '.repeat(indent.at + STATUS_WIDTH)}→ ${outside(line, 4096)}`);
  }
}

function summaryOf(checks: readonly Check[]): string {
  const count = (status: CheckStatus): number =>
    checks.filter((check) => check.status === status).length;
  return `${count('ok')} ok, ${count('limited')} limited, ${count('missing')} missing.`;
}

/** The same as one JSON document (docs/schema/doctor.schema.json). */
export function renderDoctorJson({ toolVersion, machine, target }: Diagnosis): string {
  const document = {
    schema_version: SCHEMA_VERSION,
    tool: { name: 'tracewright', version: toolVersion },
    command: 'doctor',
    pid: target?.pid ?? null,
    checks: [...machine, ...(target?.checks ?? [])].map(({ name, status, detail, remedy }) => ({
      name,
      status,
      detail: outside(detail, 4096),
      remedy:
        remedy === null
          ? null
          : remedy
              .split('\n')
              .map((line) => outside(line, 4096))
              .join('\n'),
    })),
  };
  return `${JSON.stringify(document, null, 2)}\n`;
}
