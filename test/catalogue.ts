import { Ajv2020 } from 'ajv/dist/2020.js';
import type { CatalogueEntry } from '../src/core/catalogue/entry.ts';
import { documentationOf } from '../src/core/catalogue/catalogue.ts';
import { anchors, type Page } from './docs.ts';

/**
 * What is compared with the catalogue: each function says what of it is missing elsewhere, and
 * where.
 */

type Catalogue = readonly CatalogueEntry[];
type Problems = readonly string[];

/** What a mechanism looks like in JSON: `xid-7` for `xid-<number>`. */
export function exampleOf(mechanism: string): string {
  return mechanism.replace('<number>', '7').replace('<name>', 'EXAMPLE');
}

/** The mechanisms of an entry as they may stand in JSON, null among them. */
export function mechanismsOf({ mechanisms, isList }: CatalogueEntry): readonly (string | null)[] {
  const names = Object.keys(mechanisms).map(exampleOf);
  return [null, ...names, ...(isList === true ? [names.join(', ')] : [])];
}

/** A finding as JSON has it, and as the schema must take it. */
const FINDING = {
  id: 'F1',
  severity: 'warning',
  confidence: 'likely',
  pid: 42,
  summary: 'something was seen',
  where: [],
  evidence: [{ kind: 'seen', summary: 'seen', data: {} }],
  measure: { count: 1 },
  remedy: null,
} as const;

/** The part of a schema that is about findings. */
export interface FindingSchema {
  readonly $defs: Readonly<Record<string, unknown>> & {
    readonly finding: {
      readonly properties: {
        readonly kind: { readonly enum: readonly string[] };
        readonly mechanism: {
          readonly anyOf: readonly { readonly enum?: readonly string[] }[];
        };
      };
    };
  };
}

/**
 * Findings of the catalogue that the schema refuses, and kinds and mechanisms that it has and no
 * finding.
 */
export function missingInSchema(catalogue: Catalogue, schema: FindingSchema): Problems {
  const ajv = new Ajv2020({ strict: true, allowUnionTypes: true });
  const validate = ajv.compile({ $ref: '#/$defs/finding', $defs: schema.$defs });
  const refused = catalogue.flatMap((entry) =>
    mechanismsOf(entry)
      .filter((mechanism) => {
        const { code, kind } = entry;
        return validate({ ...FINDING, code, kind, mechanism }) !== true;
      })
      .map((mechanism) => `the schema refuses ${entry.code} ${entry.kind}, ${String(mechanism)}`),
  );
  const { kind, mechanism } = schema.$defs.finding.properties;
  const kinds = new Set(catalogue.map((entry) => entry.kind));
  const names = new Set(catalogue.flatMap((entry) => Object.keys(entry.mechanisms)));
  const listed = mechanism.anyOf.flatMap((part) => part.enum ?? []);
  return [
    ...refused,
    ...kind.enum.filter((one) => !kinds.has(one)).map((one) => `no finding is of kind ${one}`),
    ...listed.filter((one) => !names.has(one)).map((one) => `no finding has mechanism ${one}`),
  ];
}

/**
 * Codes without a heading of their own, mechanisms that are not named below it, and codes that the
 * table of all lacks.
 */
export function missingInDocs(
  catalogue: Catalogue,
  { detectors, table }: { readonly detectors: Page; readonly table: Page },
): Problems {
  const known = anchors(detectors);
  const sections = sectionsOf(detectors);
  const codes = new Set(catalogue.map(({ code }) => code));
  const foreign = sections
    .flatMap(({ title }) => /^TRC\d{3}/.exec(title) ?? [])
    .filter((code) => !codes.has(code))
    .map((code) => `${code} has a heading in ${detectors.path} and is no code`);
  const missing = catalogue.flatMap((entry) => {
    const { code, kind, mechanisms } = entry;
    const [path = '', anchor = ''] = documentationOf(entry).split('#');
    const section = sections.find(({ title }) => title.startsWith(`${code} `))?.text ?? '';
    const unnamed = Object.keys(mechanisms).filter((name) => !section.includes(`\`${name}\``));
    return [
      ...(path === detectors.path && known.has(anchor)
        ? []
        : [`${code} has no heading in ${path}`]),
      ...unnamed.map((name) => `${code} does not name ${name} in ${path}`),
      ...(table.text.includes(`| ${code} | \`${kind}\` |`)
        ? []
        : [`${code} ${kind} is not in the table of ${table.path}`]),
    ];
  });
  return [...missing, ...foreign];
}

function sectionsOf({ text }: Page): readonly { readonly title: string; readonly text: string }[] {
  return text.split(/^#{1,6} /m).map((part) => {
    const [title = '', ...lines] = part.split('\n');
    return { title, text: lines.join('\n') };
  });
}

/** Kinds that a report has no word for. */
export function missingInWords(
  catalogue: Catalogue,
  words: Readonly<Partial<Record<string, string>>>,
): Problems {
  return catalogue
    .filter(({ kind }) => (words[kind] ?? '') === '')
    .map(({ code, kind }) => `${code} ${kind} has no word for the verdict`);
}

/**
 * Kinds that completion does not offer where one may be typed, and those that it offers and are
 * none.
 */
export function missingInCompletion(catalogue: Catalogue, offered: readonly string[]): Problems {
  const kinds = new Set(catalogue.map(({ kind }) => kind));
  const severities = ['note', 'warning', 'critical'];
  return [
    ...catalogue
      .filter(({ kind }) => !offered.includes(kind))
      .map(({ code, kind }) => `${code} ${kind} is not completed`),
    ...offered
      .filter((one) => !kinds.has(one) && !severities.includes(one))
      .map((one) => `${one} is completed and no finding`),
  ];
}
