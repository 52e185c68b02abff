import { readFileSync } from 'node:fs';
import { describe, expect, it } from 'vitest';
import { CATALOGUE } from '../../../src/core/catalogue/catalogue.ts';
import type { CatalogueEntry } from '../../../src/core/catalogue/entry.ts';
import { bodyOf, PARTS, plainText, sectionOf } from '../../../src/report/explain/section.ts';

const PAGE = readFileSync('docs/detectors.md', 'utf8');

/** What of the catalogue a page does not explain, and what it explains that is not shown. */
function unexplained(catalogue: readonly CatalogueEntry[], page: string): readonly string[] {
  return catalogue.flatMap(({ code, means, severity, mechanisms }) => {
    const section = sectionOf(page, code);
    const body = bodyOf(page, code);
    const [before = ''] = body.split('**Decided by.**');
    const said = before
      .replaceAll(/^\|.*\|$/gm, '')
      .replaceAll(/\n+/g, '\n')
      .trim();
    const rows = [...before.matchAll(/^\| `([^`]+)` \| (.*) \|$/gm)].map(([, name, what]) => [
      name ?? '',
      what ?? '',
    ]);
    return [
      ...PARTS.filter((name) => name !== 'More' && section[name].length === 0).map(
        (name) => `${code} has no part '${name}'`,
      ),
      ...(plainText(said) === `${means}\nSeverity: ${severity}.`
        ? []
        : [`${code} is not introduced as in the catalogue`]),
      ...(JSON.stringify(rows) === JSON.stringify(Object.entries(mechanisms))
        ? []
        : [`${code} has other mechanisms than the catalogue`]),
      ...(/^(?:\||```|>)/m.test(body.slice(before.length))
        ? [`${code} has more than paragraphs and lists`]
        : []),
    ];
  });
}

describe('the section of a finding', () => {
  it('says of each what the catalogue does, how it is decided, by which numbers, where it is blind and what to do', () => {
    expect(unexplained(CATALOGUE, PAGE)).toEqual([]);
  });

  it('is found to lack a part that was left out, and to have a table that cannot be shown', () => {
    const one = CATALOGUE.filter(({ code }) => code === 'TRC120');
    expect(unexplained(one, PAGE.replaceAll('**Blind.**', '**Deaf.**'))).toEqual([
      "TRC120 has no part 'Blind'",
    ]);
    expect(unexplained(one, PAGE.replaceAll('\n**Blind.**', '\n| a | b |\n\n**Blind.**'))).toEqual([
      'TRC120 has more than paragraphs and lists',
    ]);
    expect(unexplained([{ ...one[0], code: 'TRC999' } as CatalogueEntry], PAGE)).toHaveLength(6);
  });

  it('gives every number with its unit, or what it counts', () => {
    for (const { code } of CATALOGUE.filter((entry) => entry.code !== 'TRC119'))
      for (const { text } of sectionOf(PAGE, code).Numbers) expect(text, code).toMatch(/^\*\*/);
  });
});

describe('Markdown as plain text', () => {
  it('has no marks, and says where links lead', () => {
    expect(plainText('**5 s** of `RLock`, in `idle in transaction`')).toBe(
      "5 s of RLock, in 'idle in transaction'",
    );
    expect(plainText('[a](#b), [c](load.md#d), [e](../src/f.ts), [g](https://h.example)')).toBe(
      'a (docs/detectors.md#b), c (docs/load.md#d), e (src/f.ts), g (https://h.example)',
    );
    expect(plainText('`a[0](**b**)`')).toBe('a[0](**b**)');
  });

  it('keeps paragraphs and items of a list apart, whatever their lines', () => {
    const page =
      '### TRC900 `x`\n\n**Decided by.** One\ntwo.\n\n**Numbers.**\n\n- a\n  b\n- c\n\n### TRC901 `y`\n\n**Blind.** Z';
    expect(sectionOf(page, 'TRC900')).toEqual({
      'Decided by': [{ kind: 'paragraph', text: 'One two.' }],
      Numbers: [
        { kind: 'item', text: 'a b' },
        { kind: 'item', text: 'c' },
      ],
      Blind: [],
      'What to do': [],
      More: [],
    });
  });
});
