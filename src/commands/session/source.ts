import { statSync } from 'node:fs';
import { resolve } from 'node:path';
import { errorCode, usageError } from '../../core/errors.ts';
import { printable } from '../../core/text.ts';
import type { Fields } from '../../core/session.ts';
import { formatBytes } from '../../core/units.ts';
import { readBeginSync } from '../../platform/outside-file.ts';
import { extractReport, type Report, REPORT_LIMIT } from '../../session/report-text.ts';
import type { CommandContext } from '../command-line/command.ts';
import { textOf } from './opening.ts';
import type { ImportedReport } from './sources/imported.ts';

/** What a session is begun from: words, a pasted or piped report, a file, an issue, a ticket. */

/** A description of what is wrong; untrusted, unless it was typed. */
export interface Source {
  readonly title: string | null;
  /** Verbatim, as far as it is kept; the file holds it without credentials. */
  readonly trigger: string;
  readonly symptoms: Fields;
  /** Whether somebody else wrote it. */
  readonly outside: boolean;
  /** What the user should know of it. */
  readonly notes: readonly string[];
}

/** Characters of a trigger: its fields hold what matters, and a file of many megabytes is nobody's to edit. */
const TRIGGER_LIMIT = 256 * 1024;

/** The source that the command line names; null where it names none. */
export async function sourceOf(context: CommandContext): Promise<Source | null> {
  const { values, positionals, environment } = context;
  const words = positionals.join(' ').trim();
  const [github, linear] = [textOf(values, 'github'), textOf(values, 'linear')];
  if ([words === '' ? null : words, github, linear].filter((one) => one !== null).length > 1)
    throw usageError(
      'a session begins with one report',
      'Name a description, a file, --github or --linear.',
    );
  if (github !== null) {
    const { fetchGithubIssue } = await import('./sources/github.ts');
    return ofImport(await fetchGithubIssue(github, environment.env));
  }
  if (linear !== null) {
    const { fetchLinearTicket } = await import('./sources/linear.ts');
    return ofImport(await fetchLinearTicket(linear, environment.env));
  }
  if (words === '-') return ofReport(await environment.stdin.text(REPORT_LIMIT + 1));
  const file = positionals.length === 1 ? fileNamed(resolve(environment.cwd, words)) : null;
  if (file !== null) return ofReport(file);
  return words === '' ? null : ofWords(words);
}

/** What somebody typed: a sentence, or a report that was pasted between quotes. */
export function ofWords(words: string): Source {
  if (words.includes('\n')) return ofReport(words);
  return { title: words, trigger: kept(words), symptoms: {}, outside: false, notes: [] };
}

function ofReport(text: string): Source {
  if (text.trim() === '') throw usageError('the report is empty');
  const report = extractReport(text);
  const notes =
    text.length > REPORT_LIMIT
      ? [`only the first ${formatBytes(REPORT_LIMIT)} of the report were read`]
      : [];
  return {
    title: report.title,
    trigger: kept(text),
    symptoms: symptomsIn(report),
    outside: true,
    notes,
  };
}

/** An issue's own text first; what it leaves blank may stand in its author's comments. */
function ofImport(found: ImportedReport): Source {
  const own = found.comments.filter(({ author }) => author !== null && author === found.author);
  const reports = [found.body, ...own.map(({ body }) => body)].map((body) =>
    symptomsIn(extractReport(body)),
  );
  const symptoms: Record<string, string> = {};
  for (const [i, one] of reports.entries())
    for (const [key, value] of Object.entries(one))
      // A comment's first sentence is no description of the fault.
      if (i === 0 || key !== 'actual') symptoms[key] ??= value;
  const title = extractReport(`Title: ${found.title}`).title ?? found.title;
  return {
    title,
    trigger: kept(`${found.url}\n\n# ${found.title}\n\n${found.body}`),
    symptoms,
    outside: true,
    notes: found.missing === null ? [] : [`comments: ${found.missing}`],
  };
}

/** Fields of the file, without those that the report leaves blank. */
function symptomsIn(report: Report): Fields {
  const versions = Object.entries(report.versions).map(([name, version]) => `${name} ${version}`);
  const fields: Readonly<Record<string, string | null>> = {
    expected: report.expected,
    // Where it is not told apart, the description is what happens.
    actual: report.actual ?? report.description,
    errors: report.errors.join('\n'),
    reproduction: report.reproduction,
    started: report.started,
    worked_before: report.workedBefore,
    changed: report.changed,
    frequency: report.frequency,
    versions: versions.join('\n'),
    logs: report.logs,
  };
  const given = Object.entries(fields).filter(([, value]) => value !== null && value !== '');
  return Object.fromEntries(given) as Fields;
}

function kept(text: string): string {
  return text.slice(0, TRIGGER_LIMIT).trim();
}

/** The text of a regular file; null where there is none of that name, which is then a description. */
function fileNamed(path: string): string | null {
  if (!(statSync(path, { throwIfNoEntry: false })?.isFile() ?? false)) return null;
  try {
    // At most four bytes a character.
    return readBeginSync(path, (REPORT_LIMIT + 1) * 4).toString('utf8');
  } catch (error) {
    throw usageError(`${printable(path)} cannot be read: ${errorCode(error)}`);
  }
}
