import { readFileSync } from 'node:fs';
import { Ajv2020 } from 'ajv/dist/2020.js';
import { describe, expect, it } from 'vitest';
import { type Diagnosis, renderDoctor, renderDoctorJson } from '../../src/report/doctor.ts';

const schema = JSON.parse(readFileSync('docs/schema/doctor.schema.json', 'utf8')) as object;
const validate = new Ajv2020({ strict: true, allowUnionTypes: true, allErrors: true }).compile(
  schema,
);

const diagnosis: Diagnosis = {
  toolVersion: '1.2.3',
  machine: [
    { name: 'user', status: 'ok', detail: 'uid 0 (root)', remedy: null },
    { name: 'yama', status: 'limited', detail: 'scope 1', remedy: 'sudo one  # a\nsudo two' },
  ],
  target: {
    pid: 7,
    checks: [
      { name: 'target-memory', status: 'missing', detail: 'evil \u001b[2J', remedy: 'x\u202ey' },
    ],
  },
};
const plain = { color: false, width: 60, unicode: true };

describe('the text of trace doctor', () => {
  it('gives each check a line and each remedy one of its own, and counts them', () => {
    expect(renderDoctor({ ...diagnosis, target: null }, plain)).toBe(
      'This machine\n' +
        '  ok       user  uid 0 (root)\n' +
        '  limited  yama  scope 1\n' +
        '           → sudo one  # a\n' +
        '           → sudo two\n' +
        '\n' +
        '1 ok, 1 limited, 0 missing.\n',
    );
  });

  it('never breaks a command, however narrow the terminal', () => {
    const remedy = `sudo ${'/a-long-folder'.repeat(10)}/node attach 7`;
    const check = { name: 'x', status: 'limited', detail: 'd '.repeat(60), remedy } as const;
    const text = renderDoctor({ ...diagnosis, machine: [check], target: null }, plain);
    expect(text).toContain(`→ ${remedy}\n`);
    const others = text.split('\n').filter((line) => !line.includes('sudo'));
    for (const line of others) expect(line.length).toBeLessThanOrEqual(60);
  });

  it('shows text from outside without what a terminal would obey, in ASCII where nothing else is shown', () => {
    const text = renderDoctor(diagnosis, { ...plain, unicode: false });
    expect(text).toContain('Process 7\n');
    // oxlint-disable-next-line no-control-regex -- the point of the test
    expect(text).toMatch(/^[\n\u0020-\u007e]*$/);
  });

  it('marks the status by colour only where there is colour', () => {
    expect(renderDoctor(diagnosis, { ...plain, color: true })).toContain('\u001b[33mlimited');
    expect(renderDoctor(diagnosis, plain)).not.toContain('\u001b');
  });
});

describe('the JSON of trace doctor', () => {
  it('is what the schema in docs/schema says, with and without a process', () => {
    for (const one of [diagnosis, { ...diagnosis, target: null }]) {
      const document: unknown = JSON.parse(renderDoctorJson(one));
      expect(validate(document) ? [] : validate.errors).toEqual([]);
    }
  });

  it('has the machine first, then the process, and nothing unsafe', () => {
    const text = renderDoctorJson(diagnosis);
    expect(JSON.parse(text)).toMatchObject({
      schema_version: 1,
      tool: { name: 'tracewright', version: '1.2.3' },
      command: 'doctor',
      pid: 7,
      checks: [
        { name: 'user', status: 'ok', remedy: null },
        { name: 'yama', remedy: 'sudo one  # a\nsudo two' },
        { name: 'target-memory', status: 'missing' },
      ],
    });
    expect(text).not.toContain('\u001b');
    expect(text).not.toContain('\u202e');
  });
});
