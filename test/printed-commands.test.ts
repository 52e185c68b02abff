import { join } from 'node:path';
import { describe, expect, it } from 'vitest';
import { hypothesesOf } from '../src/analysis/hypotheses/hypotheses.ts';
import { FINDING_KINDS } from '../src/core/catalogue/catalogue.ts';
import type { Finding, FindingKind } from '../src/core/types.ts';
import { memoryRecording } from '../src/recording/memory.ts';
import { START } from './analysis/simulated-run.ts';
import { sourceFiles } from './architecture.ts';
import { pages } from './docs.ts';
import { callsIn, commandsOn, printedTexts, refusalOf } from './printed-commands.ts';

const ROOT = join(import.meta.dirname, '..');

async function refusals(where: string, text: string): Promise<string[]> {
  const said: string[] = [];
  for (const call of callsIn(text)) {
    const refusal = await refusalOf(call);
    if (refusal !== null) said.push(`${where}: ${call.call}: ${refusal}`);
  }
  return said;
}

const finding = (kind: FindingKind, duration: number): Finding => ({
  id: 'F1',
  code: 'TRC000',
  kind,
  mechanism: null,
  severity: 'warning',
  confidence: 'likely',
  pid: 42,
  summary: kind,
  where: [],
  evidence: [{ kind: 'seen', summary: 'seen' }],
  measure: { duration_s: duration },
  remedy: null,
});

describe('a call of trace that is printed', () => {
  it('by the source is one that trace takes', async () => {
    const said: string[] = [];
    let count = 0;
    for (const { path, text } of sourceFiles(ROOT, ['src', 'collectors', 'repro'])) {
      if (!text.includes('trace ')) continue;
      for (const printed of printedTexts(path, text)) {
        count += callsIn(printed.text).length;
        said.push(...(await refusals(`${path}:${printed.line}`, printed.text)));
      }
    }
    expect(count).toBeGreaterThan(200);
    expect(said).toEqual([]);
  });

  it.each(FINDING_KINDS)(
    'as the test of a hypothesis about %s is one that trace takes',
    async (kind) => {
      // A stall of a month: what is said to take three times as long has to stay within bounds.
      for (const duration of [1, 30 * 86_400]) {
        const view = memoryRecording(START).view();
        const all = [finding(kind, duration)];
        for (const recording of ['runs/one', null]) {
          const hypotheses = hypothesesOf(view, all, { recording });
          expect(hypotheses.length).toBeGreaterThan(1);
          for (const { id, mechanism, test } of hypotheses) {
            expect(await refusals(mechanism, test)).toEqual([]);
            // A test is of the hypothesis that it stands at.
            for (const [, named] of test.matchAll(/#(H\d+)/g)) expect(named).toBe(id);
          }
        }
      }
    },
  );

  it('on a page is one that trace takes', async () => {
    const said: string[] = [];
    for (const { path, text } of pages(ROOT)) {
      if (path === 'CHANGELOG.md') continue;
      for (const shown of commandsOn(text))
        said.push(...(await refusals(`${path}:${shown.line}`, shown.text)));
    }
    expect(said).toEqual([]);
  });

  it.each([
    'trace load <url> --sweep -c 1,2,4,8,16',
    '`trace repro isolate runs/one#H1 --mock a:b`',
    'Look closer: trace profile <pid> --mode banana',
    'sudo trace attach 4312 --no-such-flag',
    'then trace heap 4312 --interval, or wait',
    'trace session hypothesis remove H1',
    'trace session frobnicate H1',
  ])('is caught when trace refuses it: %s', async (text) => {
    expect(await refusals('planted', text)).toHaveLength(1);
  });

  it.each([
    'trace cleanup 4312 closes it',
    'what `trace attach` lists',
    'trace repro new <recording>#H1 --call module:function && trace repro run <dir>   # often',
    "trace session start 'requests hang, and are lost'",
    'trace session hypothesis add …',
  ])('is left alone when it is right, or only named: %s', async (text) => {
    expect(await refusals('planted', text)).toEqual([]);
  });

  it('is caught in what the test of a hypothesis does with its name', async () => {
    const source = 'test: (self) => `trace repro isolate ${self} --mock a:b`';
    const [printed] = printedTexts('planted.ts', `f({ ${source} });`);
    expect(await refusals('planted', printed?.text ?? '')).toEqual([
      expect.stringContaining('not a recording') as unknown as string,
    ]);
  });

  it('is found in strings, templates and their sums, not in remarks', () => {
    const source = '// trace a\nconst a = \'trace b \' + `c ${x.pid} d` + "e";\nf(`trace ${url}`);';
    expect(printedTexts('planted.ts', source)).toEqual([
      { line: 2, text: 'trace b c 4312 de' },
      { line: 3, text: 'trace http://127.0.0.1:8000' },
    ]);
  });
});
