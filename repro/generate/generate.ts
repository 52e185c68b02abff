import { reproFile } from '../../src/platform/standalone.ts';
import type { Language, ReproParameters } from '../parameters/parameters.ts';
import { parametersText } from '../parameters/write.ts';
import { PARAMETERS_FILE } from '../parameters/read.ts';
import { describe, type Description } from './describe.ts';
import { type Machine, readmeText } from './readme.ts';
import { pruned } from './template.ts';
import { sqlFilesOf, TRANSACTIONS_FILE } from './transactions.ts';

/** A file of a reproduction's folder. */
export interface GeneratedFile {
  readonly name: string;
  readonly text: string;
  /** May be started by its name. */
  readonly isProgram: boolean;
}

/** The files of a reproduction. Pure but for reading the templates that are shipped. */
export function generate(parameters: ReproParameters, machine: Machine): readonly GeneratedFile[] {
  const description = describe(parameters);
  const file = (name: string, text: string): GeneratedFile => ({ name, text, isProgram: false });
  const regression = REGRESSION[parameters.language];
  return [
    { name: parameters.script, text: scriptText(parameters, description), isProgram: true },
    file(PARAMETERS_FILE, parametersText(parameters)),
    ...(sqlFilesOf(parameters) === null
      ? []
      : [file(TRANSACTIONS_FILE, reproFile(`templates/python/${TRANSACTIONS_FILE}`))]),
    file('README.md', readmeText(parameters, { description, machine })),
    ...(regression === null
      ? []
      : [file(regression, reproFile(`templates/regression/${regression}`))]),
  ];
}

/** The test that keeps a fault away; a shell script is one itself. */
const REGRESSION: Readonly<Record<Language, string | null>> = {
  python: 'test_regression.py',
  node: 'regression.test.mjs',
  shell: null,
};

const ENDING: Readonly<Record<Language, string>> = { python: 'py', node: 'mjs', shell: 'sh' };

/** The name of a script: `repro.py`. */
export function scriptName(language: Language): string {
  return `repro.${ENDING[language]}`;
}

function scriptText(parameters: ReproParameters, description: Description): string {
  const { language, origin, oracle } = parameters;
  const template = reproFile(`templates/${language}/${origin}.${ENDING[language]}`);
  return withHead(pruned(template, new Set([oracle.kind])), { language, description });
}

/** A template's own head (a docstring, a block comment) gives way to what this reproduction is. */
function withHead(
  text: string,
  { language, description }: { readonly language: Language; readonly description: Description },
): string {
  const body = wrapped(
    [
      description.what,
      `Run:      ${description.run}`,
      `Expected: ${description.expected}`,
      `Actual:   ${description.actual}`,
    ].join('\n\n'),
  );
  if (language === 'python')
    return text.replace(/^"""[\s\S]*?"""/, () => `"""${escaped(body)}\n"""`);
  if (language === 'node')
    return text.replace(
      /\/\*\*[\s\S]*?\*\//,
      () => `/*\n${commented(body.replaceAll('*/', '* /'), ' *')}\n */`,
    );
  return text.replace(
    /^(#!.*\n)(?:#.*\n)+/,
    (_, first: string) => `${first}${commented(body, '#')}\n`,
  );
}

/** Within three quotes. */
function escaped(text: string): string {
  return text.replaceAll('\\', '\\\\').replaceAll('"""', '\\"\\"\\"');
}

function commented(text: string, mark: string): string {
  return text
    .split('\n')
    .map((line) => `${mark} ${line}`.trimEnd())
    .join('\n');
}

const WIDTH = 88;
/** Further lines of `Expected: …` stand below its text. */
const LABEL = /^(Run|Expected|Actual): +/;

function wrapped(text: string): string {
  return text
    .split('\n')
    .map((line) => {
      const indent = ' '.repeat(LABEL.exec(line)?.[0].length ?? 0);
      const lines: string[] = [];
      for (const word of line.split(/(?<=\S) (?=\S)/)) {
        const last = lines.at(-1);
        if (last === undefined) lines.push(word);
        else if (`${last} ${word}`.length > WIDTH) lines.push(indent + word);
        else lines[lines.length - 1] = `${last} ${word}`;
      }
      return lines.join('\n');
    })
    .join('\n');
}
