import { readFileSync } from 'node:fs';
import { Ajv2020 } from 'ajv/dist/2020.js';
import { describe, expect, it } from 'vitest';
import { main } from '../../../src/cli.ts';
import { explainUsage } from '../../../src/commands/explain/options.ts';
import { CATALOGUE, FINDING_KINDS } from '../../../src/core/catalogue/catalogue.ts';
import { displayWidth } from '../../../src/report/layout.ts';
import { fakeEnvironment } from '../fake-environment.ts';

async function explain(args: readonly string[], env: Readonly<Record<string, string>> = {}) {
  const environment = fakeEnvironment({ env });
  const code = await main(['explain', ...args], environment);
  return { code, out: environment.out(), err: environment.err() };
}

interface ExplainDocument {
  readonly findings: readonly Readonly<Record<string, string | readonly string[]>>[];
}

describe('trace explain', () => {
  it('lists every finding on a line of its own', async () => {
    const { code, out } = await explain([]);
    expect(code).toBe(0);
    const lines = out.split('\n');
    for (const { code: one, kind, title } of CATALOGUE)
      expect(lines.filter((line) => line.startsWith(one))).toEqual([
        expect.stringMatching(new RegExp(`^${one}  ${kind} +${title}$`)) as unknown as string,
      ]);
  });

  it('takes a code or a kind in upper or lower case', async () => {
    const { out } = await explain(['TRC101']);
    expect(out).toMatch(/^TRC101 {2}loop-blocked: /);
    for (const word of ['trc101', 'loop-blocked', 'Loop-Blocked'])
      expect((await explain([word])).out).toBe(out);
    expect((await explain(['TRC101', 'loop-blocked'])).out).toBe(out);
  });

  it('prints all codes of a kind that has several', async () => {
    const { out } = await explain(['deadlock']);
    expect(out.match(/^TRC\d{3} {2}/gm)).toEqual(['TRC105  ', 'TRC123  ']);
  });

  it('names the nearest for a code or kind that there is none of', async () => {
    expect(await explain(['trc1o1'])).toEqual({
      code: 2,
      out: '',
      err:
        "trace: no finding has the code or kind 'trc1o1'\n" +
        '       Did you mean trace explain TRC101? trace explain lists them all\n',
    });
    expect((await explain(['deadlokc'])).err).toContain('Did you mean trace explain deadlock?');
    const far = await explain(['\u001b[2Jsomething-else-entirely']);
    expect(far).toMatchObject({ code: 2, out: '' });
    expect(far.err).not.toContain('Did you mean');
    expect(far.err).not.toContain('\u001b');
  });

  it('is completed with every code and kind', () => {
    expect(explainUsage.completes.argument).toEqual([
      ...CATALOGUE.map(({ code }) => code),
      ...FINDING_KINDS,
    ]);
  });
});

describe.each(CATALOGUE.map(({ code }) => code))('the explanation of %s', (code) => {
  it.each(['80', '120'])('is plain text of %s columns', async (COLUMNS) => {
    const { out } = await explain([code], { COLUMNS });
    for (const line of out.split('\n'))
      expect(displayWidth(line), line).toBeLessThanOrEqual(Number(COLUMNS));
    expect(out).not.toMatch(/\]\(|\*\*|`|^\s*\|/m);
    expect(out).not.toContain('\u001b');
    for (const heading of ['Severity', 'Decided by', 'Numbers', 'Blind', 'What to do'])
      expect(out).toMatch(new RegExp(`^${heading}\\n {2}\\S`, 'm'));
  });

  it('is in colour the same text without quotes', async () => {
    const plain = (await explain([code])).out;
    const { out } = await explain([code], { FORCE_COLOR: '1' });
    expect(out).toContain('\u001b[1m');
    // oxlint-disable-next-line no-control-regex -- the marks of style.ts
    const words = (text: string) => text.replaceAll(/\u001b\[\d+m|'|\s+/g, '');
    expect(words(out)).toBe(words(plain));
  });
});

describe('trace explain --json', () => {
  const schema = JSON.parse(readFileSync('docs/schema/explain.schema.json', 'utf8')) as object;
  const validate = new Ajv2020({ strict: true, allErrors: true }).compile(schema);

  it.each([[[]], [['TRC101']], [['deadlock', 'TRC118']]])(
    'prints a document of the schema for %j',
    async (args: readonly string[]) => {
      const { code, out } = await explain([...args, '--json']);
      expect(code).toBe(0);
      const document = JSON.parse(out) as ExplainDocument;
      expect(validate(document), JSON.stringify(validate.errors)).toBe(true);
      expect(document.findings).toHaveLength({ 0: CATALOGUE.length, 1: 1, 2: 3 }[args.length] ?? 0);
      expect(out).not.toMatch(/\]\(|\*\*|`/);
    },
  );
});
