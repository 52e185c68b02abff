import { mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { Ajv2020 } from 'ajv/dist/2020.js';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { main } from '../../../src/cli.ts';
import { ATTR, METRIC } from '../../../src/core/semconv.ts';
import { openRecordingWriter } from '../../../src/recording/writer.ts';
import { runStart, STARTED_AT } from '../../report/sample-report.ts';
import { fakeEnvironment } from '../fake-environment.ts';

let folder: string;

/** A recording in which the open files grow from ten to ten and `rise` a second, for two minutes. */
async function record(name: string, rise: number): Promise<void> {
  const writer = await openRecordingWriter({
    directory: join(folder, name),
    start: runStart,
    env: {},
  });
  for (let second = 0; second < 120; second++) {
    const at = STARTED_AT + second;
    const value = 10 + rise * second;
    writer.write({ kind: 'sample', at, metric: METRIC.fds.name, value });
    const attributes = { [ATTR.descriptorKind]: 'file' };
    writer.write({ kind: 'sample', at, metric: METRIC.descriptors.name, value, attributes });
  }
  await writer.close();
}

async function hypotheses(...argv: string[]) {
  const environment = fakeEnvironment({ cwd: folder });
  const code = await main(['hypotheses', ...argv], environment);
  return { code, out: environment.out(), err: environment.err() };
}

beforeAll(async () => {
  folder = mkdtempSync(join(tmpdir(), 'trace-hypotheses-'));
  await record('leaking', 2);
  await record('quiet', 0);
  mkdirSync(join(folder, 'repro'));
  const verdict = {
    outcome: 'not-reproduced',
    subject: { label: 'as given', reproduced: 0, trials: 60, invalid: 0 },
    control: null,
  };
  const tested = { hypothesis: { id: 'H1', mechanism: 'leak', claim: 'it leaks' } };
  writeFileSync(join(folder, 'repro', 'parameters.json'), JSON.stringify(tested));
  writeFileSync(join(folder, 'repro', 'verdict.json'), JSON.stringify(verdict));
  writeFileSync(join(folder, 'no-verdict.json'), '{"outcome": "maybe"}');
});

afterAll(() => rmSync(folder, { recursive: true }));

describe('trace hypotheses', () => {
  it('ranks rivals, with what speaks for and against each, what would tell, and how', async () => {
    const { code, out, err } = await hypotheses('leaking');
    expect({ code, err }).toEqual({ code: 0, err: '' });
    expect(out).toMatch(/^F1 {2}open descriptors grow/);
    for (const mechanism of ['leak', 'warm-up', 'load-rises']) {
      expect(out).toMatch(new RegExp(`^H\\d {2}open {2}${mechanism}, [+-]`, 'm'));
    }
    expect(out.indexOf('leak,')).toBeLessThan(out.indexOf('warm-up,'));
    for (const label of ['for', 'against', 'confirms', 'refutes', 'test']) {
      expect(out).toMatch(new RegExp(`^ {4}${label} +\\S`, 'm'));
    }
    for (const line of out.split('\n').filter((one) => !one.includes(' test ')))
      expect(line.length).toBeLessThanOrEqual(100);
  });

  it('takes a finding by its address, and says which there are', async () => {
    expect((await hypotheses('leaking#F1')).code).toBe(0);
    const { code, err } = await hypotheses('leaking#F7');
    expect(code).toBe(3);
    expect(err).toContain('It has F1.');
  });

  it('is changed by a verdict', async () => {
    const { out } = await hypotheses('leaking', '--verdict', 'repro');
    expect(out).toMatch(/^H\d {2}refuted {2}leak/m);
    expect(out).not.toMatch(/^H1 {2}\w+ {2}leak/m);
    expect(out).toContain('0 of 60 trials');
    expect((await hypotheses('leaking', '--verdict', join('repro', 'verdict.json'))).out).toBe(out);
  });

  it.each([['nowhere'], ['no-verdict.json']])('refuses %s as a verdict', async (path) => {
    const { code, out, err } = await hypotheses('leaking', '--verdict', path);
    expect({ code, out }).toEqual({ code: 3, out: '' });
    expect(err).toContain(path);
  });

  it('says that there is nothing to explain', async () => {
    const { code, out } = await hypotheses('quiet');
    expect(code).toBe(0);
    expect(out).toContain('Nothing was found');
  });

  it('prints one document by its schema', async () => {
    const root = join(import.meta.dirname, '..', '..', '..');
    const schema = readFileSync(join(root, 'docs', 'schema', 'hypotheses.schema.json'), 'utf8');
    const validate = new Ajv2020({ strict: true, allowUnionTypes: true }).compile(
      JSON.parse(schema) as object,
    );
    for (const name of ['leaking', 'quiet']) {
      const { out } = await hypotheses(name, '--json');
      expect(validate(JSON.parse(out)), JSON.stringify(validate.errors)).toBe(true);
    }
  });
});
