import {
  copyFileSync,
  existsSync,
  mkdtempSync,
  readFileSync,
  rmSync,
  writeFileSync,
} from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { Ajv2020 } from 'ajv/dist/2020.js';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { main } from '../../../src/cli.ts';
import { REPRO_ATTR, REPRO_SPAN } from '../../../src/core/semconv-repro.ts';
import { openRecording } from '../../../src/recording/reader.ts';
import { fakeEnvironment } from '../fake-environment.ts';

const ROOT = join(import.meta.dirname, '..', '..', '..');
const LIMIT_MS = 120_000;
let cwd = '';

beforeAll(() => {
  cwd = mkdtempSync(join(tmpdir(), 'trace-repro-'));
  for (const name of ['planted.mjs', 'planted.py', 'daemons.py'])
    copyFileSync(join(ROOT, 'test', 'repro', 'targets', name), join(cwd, name));
});
afterAll(() => rmSync(cwd, { recursive: true, force: true }));

async function trace(...argv: string[]): Promise<{ code: number; out: string; err: string }> {
  const environment = fakeEnvironment({ cwd, env: { HOME: cwd } });
  const code = await main(['repro', ...argv], environment);
  return { code, out: environment.out(), err: environment.err() };
}

describe('trace repro', () => {
  it(
    'writes a folder, runs it beside a control, and says so as text, JSON and spans',
    async () => {
      const read = './planted.mjs#readBalance';
      const oracle = `lost-update:read=${read}`;
      const made = await trace(
        'new',
        '--call',
        './planted.mjs#deposit',
        '--oracle',
        oracle,
        '-o',
        'lost',
      );
      expect(made).toMatchObject({ code: 0, err: '' });
      for (const name of ['repro.mjs', 'parameters.json', 'README.md', 'regression.test.mjs']) {
        expect(made.out).toContain(name);
        // It is to be given to others.
        expect(readFileSync(join(cwd, 'lost', name), 'utf8')).not.toContain(cwd);
      }
      const { code, out } = await trace('run', 'lost', '--runs', '2', '--seed', '5', '--json');
      expect(code).toBe(1);
      const document = JSON.parse(out) as { recording: string; witness_seed: number };
      const schema = readFileSync(join(ROOT, 'docs', 'schema', 'repro-run.schema.json'), 'utf8');
      const validate = new Ajv2020({ strict: false }).compile(JSON.parse(schema) as object);
      expect(validate(document), JSON.stringify(validate.errors)).toBe(true);
      expect(document).toMatchObject({
        outcome: 'reproduced',
        subject: { reproduced: 2, trials: 2, invalid: 0 },
        control: { label: 'concurrency 1', reproduced: 0, trials: 2 },
        witness_seed: 5,
        stopped_early: false,
      });
      expect(JSON.parse(readFileSync(join(cwd, 'lost', 'verdict.json'), 'utf8'))).toEqual(document);
      const spans = (await openRecording(document.recording)).spans(REPRO_SPAN.trial);
      expect(
        spans.map(({ attributes }) => String(attributes[REPRO_ATTR.outcome])).toSorted(),
      ).toEqual(['not-reproduced', 'not-reproduced', 'reproduced', 'reproduced']);
    },
    LIMIT_MS,
  );

  it(
    'that expects none takes a bound that is low enough, and else fails',
    async () => {
      await trace('new', '--call', './planted.mjs#takeAtOnce', '-o', 'fixed', '--attempts', '20');
      const few = ['--expect', 'none', '--no-control', '--no-recording', '--runs'];
      const sure = await trace('run', 'fixed', ...few, '4', '--max-rate', '0.6');
      expect(sure).toMatchObject({ code: 0 });
      expect(sure.out).toContain('below 53 %');
      const unsure = await trace('run', 'fixed', ...few, '2');
      expect(unsure).toMatchObject({ code: 1 });
    },
    LIMIT_MS,
  );

  it(
    'that stops early gives an interval that holds at any time',
    async () => {
      await trace('new', '--call', './planted.mjs#take', '-o', 'early');
      const { code, out } = await trace('run', 'early', '--stop-after', '1', '--no-recording');
      expect(code).toBe(1);
      expect(out).toMatch(/at any time: it stopped early/);
      expect(out).not.toContain('Fisher');
    },
    LIMIT_MS,
  );

  it.each([
    ['xterm', true],
    ['dumb', false],
  ])(
    'on a terminal of kind %s shows how far it is: %s',
    async (TERM, isShown) => {
      await trace('new', '--call', './planted.mjs#takeAtOnce', '-o', TERM, '--attempts', '2');
      const environment = fakeEnvironment({ cwd, env: { HOME: cwd, TERM }, typed: [] });
      const args = ['repro', 'run', TERM, '--runs', '1', '--no-control', '--no-recording'];
      expect(await main(args, environment)).toBe(0);
      // oxlint-disable-next-line no-control-regex -- what a dumb terminal would show as it is
      expect(/[\u001b\r]/.test(environment.out() + environment.err())).toBe(isShown);
    },
    LIMIT_MS,
  );

  it(
    'of which no trial could run is invalid, and leaves a reason',
    async () => {
      await trace('new', '--call', './planted.mjs#take', '-o', 'broken');
      const path = join(cwd, 'broken', 'parameters.json');
      writeFileSync(path, readFileSync(path, 'utf8').replace('#take', '#gone'));
      const { code, out } = await trace('run', 'broken', '--runs', '1', '--no-recording');
      expect(code).toBe(6);
      expect(out).toMatch(/^INVALID/);
      expect(out).toContain('exports no function gone');
    },
    LIMIT_MS,
  );

  it(
    'that is interrupted judges the trials until then, and leaves no process',
    async () => {
      const hang =
        "import { writeFileSync } from 'node:fs';\nexport const hang = () => { writeFileSync('pid', String(process.pid)); return new Promise((done) => setTimeout(done, 600000)); };\n";
      writeFileSync(join(cwd, 'hang.mjs'), hang);
      await trace('new', '--call', './hang.mjs#hang', '-o', 'hanging', '--timeout', '500');
      const environment = fakeEnvironment({ cwd, env: { HOME: cwd } });
      const running = main(['repro', 'run', 'hanging', '--no-recording'], environment);
      const pid = join(cwd, 'hanging', 'pid');
      await expect.poll(() => existsSync(pid), { timeout: 60_000 }).toBe(true);
      environment.send('SIGINT');
      expect(await running).toBe(130);
      const gone = `/proc/${readFileSync(pid, 'utf8')}/exe`;
      await expect.poll(() => existsSync(gone), { timeout: 60_000 }).toBe(false);
      const verdict = readFileSync(join(cwd, 'hanging', 'verdict.json'), 'utf8');
      expect(JSON.parse(verdict)).toMatchObject({ interrupted: true, trials: [] });
    },
    LIMIT_MS,
  );

  it.each(['leave_daemon', 'leave_child'])(
    'is no hang where %s leaves a process behind, which is named and ended',
    async (name) => {
      const oracle = 'no-progress:within_s=3';
      const attempts = ['--attempts', '2', '--timeout', '5s'];
      await trace('new', '--call', `daemons:${name}`, '--oracle', oracle, ...attempts, '-o', name);
      const options = ['--runs', '1', '--no-control', '--no-recording'];
      const { code, out } = await trace('run', name, ...options);
      expect(out).toMatch(/^NOT REPRODUCED\n/);
      expect(out).toMatch(/1 trial left processes running, which were ended: pid \d+ \(/);
      expect(code).toBe(0);
      const { trials } = JSON.parse(readFileSync(join(cwd, name, 'verdict.json'), 'utf8')) as {
        trials: { left: { pid: number; title: string }[] }[];
      };
      const left = trials.flatMap((trial) => trial.left);
      // One of each attempt.
      expect(left).toHaveLength(2);
      for (const { pid } of left) expect(existsSync(`/proc/${pid}/exe`)).toBe(false);
    },
    LIMIT_MS,
  );

  it.each([
    [['new'], 2, 'Give --call'],
    [['new', '--call', 'nothing'], 2, '--call takes'],
    [['new', '--call', './planted.mjs#nope'], 2, 'exports no function nope'],
    [['new', '--call', './planted.mjs#take', '--oracle', 'lost-update'], 2, 'needs read'],
    [['new', '--call', 'planted:echo'], 2, 'Give --args-file'],
    [['run', 'nowhere'], 3, 'holds no reproduction'],
    [['run', 'x', '--package', 'redis'], 2, 'redis==4.5.3'],
    [['run', 'x', '--max-rate', '0.1'], 2, '--expect none'],
    [['run', 'x', '--env', 'NAME'], 2, 'NAME=value'],
    [['runn'], 2, 'Did you mean trace repro run?'],
  ] as const)('%j is refused with %i', async (argv, code, message) => {
    const said = await trace(...argv);
    expect(said.code).toBe(code);
    expect(said.err).toContain(message);
    expect(said.out).toBe('');
  });
});
