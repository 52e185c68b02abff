import { CATALOGUE } from '../../core/catalogue/catalogue.ts';
import type { CatalogueEntry } from '../../core/catalogue/entry.ts';
import { usageError } from '../../core/errors.ts';
import { EXIT, type ExitCode } from '../../core/exit-code.ts';
import { printable } from '../../core/text.ts';
import { documentationPage } from '../../platform/standalone.ts';
import {
  renderExplanationJson,
  renderExplanations,
  renderFindingList,
} from '../../report/explain/explanation.ts';
import { decideSurface } from '../../report/style.ts';
import { chooseFormat } from '../attach/options.ts';
import type { Command, CommandContext } from '../command-line/command.ts';
import { nearest } from '../command-line/nearest.ts';
import { toolVersion } from '../version.ts';
import { explainUsage } from './options.ts';

/** `trace explain`: what a finding means, from the catalogue and its page. */
export const explainCommand: Command = { ...explainUsage, run };

async function run({ values, positionals, environment }: CommandContext): Promise<ExitCode> {
  const format = chooseFormat(values);
  const entries =
    positionals.length === 0 ? CATALOGUE : [...new Set(positionals.flatMap(entriesNamed))];
  const { stdout, env } = environment;
  const { isTTY, columns } = stdout;
  const surface = decideSurface({ env, isTTY, columns, noColor: values['no-color'] === true });
  const page = documentationPage('detectors.md');
  if (format === 'json')
    stdout.write(renderExplanationJson(entries, { page, toolVersion: toolVersion() }));
  else if (positionals.length === 0) stdout.write(renderFindingList(entries, surface));
  else stdout.write(renderExplanations(entries, { page, surface }));
  return EXIT.ok;
}

/** The findings of a code, which is one, or of a kind. */
function entriesNamed(word: string): readonly CatalogueEntry[] {
  const typed = word.toLowerCase();
  const found = CATALOGUE.filter(
    ({ code, kind }) => code.toLowerCase() === typed || kind === typed,
  );
  if (found.length > 0) return found;
  const known = CATALOGUE.flatMap(({ code, kind }) => [code.toLowerCase(), kind]);
  const meant = nearest(typed, known)?.replace(/^trc/, 'TRC') ?? null;
  throw usageError(
    `no finding has the code or kind '${printable(word, 60)}'`,
    meant === null
      ? 'trace explain lists them all'
      : `Did you mean trace explain ${meant}? trace explain lists them all`,
  );
}
