import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { Ajv2020 } from 'ajv/dist/2020.js';
import { describe, expect, it } from 'vitest';
import { DETECTORS } from '../src/analysis/detectors.ts';
import { runUsage } from '../src/commands/run/options.ts';
import {
  CATALOGUE,
  FINDING_KINDS,
  mechanismOf,
  VERDICT_WORDS,
} from '../src/core/catalogue/catalogue.ts';
import type { CatalogueEntry } from '../src/core/catalogue/entry.ts';
import { HYPOTHESIS_MECHANISMS } from '../src/core/hypothesis.ts';
import type { FindingOf } from '../src/core/types.ts';
import { toFinding } from '../src/core/otlp-records.ts';
import { renderJson } from '../src/report/json.ts';
import { buildReport } from '../src/report/report.ts';
import { sourceFiles } from './architecture.ts';
import {
  type FindingSchema,
  mechanismsOf,
  missingInCompletion,
  missingInDocs,
  missingInSchema,
  missingInWords,
} from './catalogue.ts';
import { blockedFinding, sampleView } from './report/sample-report.ts';

const ROOT = join(import.meta.dirname, '..');
const text = (path: string): string => readFileSync(join(ROOT, path), 'utf8');
const page = (path: string) => ({ path, text: text(path) });
const schema = (name: string) => JSON.parse(text(`docs/schema/${name}.schema.json`)) as object;

const MADE_UP: CatalogueEntry = {
  code: 'TRC999',
  kind: 'made-up',
  title: 'Something that nobody looks for',
  means: 'Nothing.',
  mechanisms: { 'never seen': 'nothing' },
  severity: 'a note',
};

const docs = { detectors: page('docs/detectors.md'), table: page('docs/architecture.md') };
const completed = runUsage.completes.values['fail-on'];
const COMPARED: readonly [string, (catalogue: readonly CatalogueEntry[]) => readonly string[]][] = [
  ['the schema of attach', (all) => missingInSchema(all, schema('attach') as FindingSchema)],
  ['the schema of load', (all) => missingInSchema(all, schema('load') as FindingSchema)],
  ['the documentation', (all) => missingInDocs(all, docs)],
  ['the words of the verdict', (all) => missingInWords(all, VERDICT_WORDS)],
  [
    'completion',
    (all) => missingInCompletion(all, Array.isArray(completed) ? completed.map(String) : []),
  ],
];

describe.each(COMPARED)('%s', (_, missing) => {
  it('has every finding, and nothing else', () => {
    expect(missing(CATALOGUE)).toEqual([]);
  });

  it('is found to lack one that is made up', () => {
    const problems = missing([...CATALOGUE, MADE_UP]);
    expect(problems.length).toBeGreaterThan(0);
    for (const problem of problems) expect(problem).toContain('TRC999');
  });
});

it.each(COMPARED.slice(0, 3))('%s is found to lack a mechanism that is made up', (_, missing) => {
  const changed = CATALOGUE.map((entry) => ({
    ...entry,
    mechanisms:
      entry.code === 'TRC105' ? { ...entry.mechanisms, ...MADE_UP.mechanisms } : entry.mechanisms,
  }));
  expect(missing(changed)).toEqual([
    expect.stringMatching(/TRC105.*never seen/) as unknown as string,
  ]);
});

it.each(['attach', 'load', 'hypotheses'])(
  'the schema of %s knows every explanation, and no other',
  (name) => {
    const { $defs } = schema(name) as {
      $defs: { hypothesis: { properties: { mechanism: { enum: string[] } } } };
    };
    expect($defs.hypothesis.properties.mechanism.enum).toEqual([...HYPOTHESIS_MECHANISMS]);
  },
);

describe('the catalogue', () => {
  it('has each code once, and only codes that a detector has', () => {
    const codes = CATALOGUE.map(({ code }) => code);
    expect(new Set(codes).size).toBe(codes.length);
    const analysis = sourceFiles(ROOT, ['src/analysis']).map((file) => file.text);
    const said = new Set(analysis.flatMap((one) => one.match(/'TRC\d{3}'/g) ?? []));
    expect([...said].toSorted()).toEqual(codes.map((code) => `'${code}'`).toSorted());
    for (const { code } of DETECTORS) expect(codes).toContain(code);
  });

  it('says what each means in two sentences at most', () => {
    for (const { means, title, severity } of CATALOGUE) {
      expect(means.split(/\.(?:\s|$)/).filter(Boolean).length).toBeLessThanOrEqual(2);
      expect(means).toMatch(/\.$/);
      expect(`${title}${severity}`).not.toMatch(/\.$/);
    }
  });

  it('is what the type of a finding allows, and no more', () => {
    type Name = Pick<FindingOf<'deadlock'>, 'kind' | 'mechanism'>;
    const names: readonly Name[] = [
      { kind: 'deadlock', mechanism: 'lock order' },
      // @ts-expect-error -- no detector says so
      { kind: 'deadlock', mechanism: 'lock cycle' },
      // @ts-expect-error -- that is a mechanism of another kind
      { kind: 'deadlock', mechanism: 'kernel never returned' },
    ];
    expect(names.map(({ kind, mechanism }) => mechanismOf(kind, mechanism))).toEqual([
      'lock order',
      null,
      null,
    ]);
  });

  it('tells mechanisms of a kind from any other text', () => {
    expect(mechanismOf('deadlock', 'lock order')).toBe('lock order');
    expect(mechanismOf('deadlock', 'transactions in opposite order')).not.toBeNull();
    expect(mechanismOf('deadlock', 'lock cycle')).toBeNull();
    expect(mechanismOf('wedge', 'lock order')).toBeNull();
    expect(mechanismOf('gpu-fault', 'xid-48')).toBe('xid-48');
    expect(mechanismOf('gpu-fault', 'xid-')).toBeNull();
    expect(mechanismOf('gpu-fault', 'xid-4a')).toBeNull();
    expect(mechanismOf('process-exit', 'SIGKILL')).toBe('SIGKILL');
    expect(mechanismOf('process-exit', 'signal 64')).toBe('signal 64');
    expect(mechanismOf('client-saturated', 'reading, core')).toBe('reading, core');
    expect(mechanismOf('client-saturated', 'reading, luck')).toBeNull();
    expect(mechanismOf('fd-leak', 'anon_inode:[eventpoll]')).toBe('anon_inode:[eventpoll]');
    expect(mechanismOf('thread-leak', null)).toBeNull();
  });
});

describe('a report', () => {
  const validate = new Ajv2020({ strict: true, allowUnionTypes: true, allErrors: true }).compile(
    schema('attach'),
  );

  it.each(CATALOGUE.map((entry) => [entry.code, entry] as const))(
    'of %s is valid with each of its mechanisms, and comes back as it was',
    (code, entry) => {
      for (const mechanism of mechanismsOf(entry)) {
        const body = { ...blockedFinding, code, kind: entry.kind, mechanism };
        const finding = toFinding(body);
        expect(finding).toMatchObject({ kind: entry.kind, mechanism });
        if (finding === undefined) continue;
        const report = buildReport(sampleView(), [finding], { recording: null });
        expect(validate(JSON.parse(renderJson(report))), JSON.stringify(validate.errors)).toBe(
          true,
        );
      }
    },
  );

  it('of a newer version keeps all but a mechanism that is not known', () => {
    const body = { ...blockedFinding, mechanism: 'quantum' };
    expect(toFinding(body)).toEqual({ ...blockedFinding, mechanism: null });
    expect(toFinding({ ...body, kind: 'tomorrow' })).toEqual({
      ...blockedFinding,
      kind: 'tomorrow',
      mechanism: null,
    });
  });

  it('has kinds in the order of their codes', () => {
    const byCode = CATALOGUE.toSorted((a, b) => a.code.localeCompare(b.code));
    expect(FINDING_KINDS).toEqual([...new Set(byCode.map(({ kind }) => kind))]);
  });
});
