import { execFile } from 'node:child_process';
import {
  copyFileSync,
  mkdtempSync,
  readFileSync,
  readdirSync,
  rmSync,
  writeFileSync,
} from 'node:fs';
import { homedir, tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { writeFolder } from '../../repro/generate/folder.ts';
import { generate, scriptName } from '../../repro/generate/generate.ts';
import {
  type Language,
  ORACLE_KINDS,
  type OracleKind,
  type ReproParameters,
} from '../../repro/parameters/parameters.ts';
import { interpreters, pythonEnvironment } from '../environments.ts';

/** What a colleague is given: every script that can be written, in one folder each. */

const ROOT = join(import.meta.dirname, '..', '..');
const LIMIT_MS = 120_000;
const TRAFFIC: readonly OracleKind[] = [
  'exception',
  'cross-talk',
  'same-alone',
  'no-progress',
  'head-of-line',
];
const KINDS: readonly (readonly [Language, ReproParameters['origin'], readonly OracleKind[]])[] = [
  ['python', 'call', ORACLE_KINDS],
  ['node', 'call', ORACLE_KINDS],
  ['python', 'traffic', TRAFFIC],
  ['node', 'traffic', TRAFFIC],
  ['shell', 'traffic', ['exception', 'cross-talk', 'no-progress']],
];
const FOLDERS = KINDS.flatMap(([language, origin, kinds]) =>
  kinds.map((kind) => ({ language, origin, kind, name: `${language}-${origin}-${kind}` })),
);
/** A port on which nothing listens. */
const NOWHERE = 'http://127.0.0.1:9';
let folder = '';

function parametersOf({ language, origin, kind }: (typeof FOLDERS)[number]): ReproParameters {
  const request = { method: 'POST', path: '/', headers: {}, offset_s: 0, body: '{nonce}' };
  return {
    schema_version: 1,
    language,
    script: scriptName(language),
    origin,
    // A claim is text from outside: it may not end the comment that it stands in.
    hypothesis: { id: 'H1', mechanism: 'race', claim: 'lost """ */ \\x \\N{x}\n#!/bin/false' },
    ...(origin === 'traffic'
      ? { traffic: { base_url: NOWHERE, requests: [request] } }
      : {
          call: {
            target: language === 'python' ? 'target:same' : '../target.mjs#same',
            path: '..',
            args: [['a']],
          },
        }),
    oracle: { kind },
    attempts: 20,
    concurrency: 4,
    timeout_s: 60,
    seed: 1,
    packages: {},
    runtime: { name: language, version: '' },
  };
}

beforeAll(async () => {
  folder = mkdtempSync(join(tmpdir(), 'trace-scripts-'));
  writeFileSync(join(folder, 'target.py'), 'def same(text):\n    return text\n');
  writeFileSync(join(folder, 'target.mjs'), 'export const same = (text) => text;\n');
  copyFileSync(
    join(ROOT, 'repro', 'templates', 'python', 'transactions.py'),
    join(folder, 'transactions.py'),
  );
  for (const one of FOLDERS)
    await writeFolder(
      join(folder, one.name),
      generate(parametersOf(one), { system: 'Linux', gpus: [] }),
    );
});
afterAll(() => rmSync(folder, { recursive: true, force: true }));

/** Runs a program with nothing of its surroundings but where the programs of a system are. */
function run(
  program: string,
  args: readonly string[],
  cwd: string = folder,
): Promise<{ code: number; output: string }> {
  return new Promise((done) => {
    const options = { cwd, env: { PATH: '/usr/bin:/bin' } };
    const child = execFile(program, args, options, (_, stdout, stderr) =>
      done({ code: child.exitCode ?? -1, output: stdout + stderr }),
    );
  });
}

/** Each text once: a regression test is the same in all folders of its language. */
function files(ending: string): readonly string[] {
  const paths = FOLDERS.flatMap(({ name }) =>
    readdirSync(join(folder, name))
      .filter((file) => file.endsWith(ending))
      .map((file) => join(name, file)),
  );
  const texts = new Map(paths.map((path) => [readFileSync(join(folder, path), 'utf8'), path]));
  // It comes into folders as it is.
  return [...texts.values(), ...(ending === '.py' ? ['transactions.py'] : [])];
}

const FINE = { code: 0 };

describe('every script that is written', { timeout: LIMIT_MS }, () => {
  it('is formatted and linted like a person’s code: Python', async () => {
    const pins = join(import.meta.dirname, 'requirements.txt');
    const { bin } = await pythonEnvironment(['ruff'], undefined, pins);
    const ruff = join(bin, 'ruff');
    const width = ['--isolated', '--no-cache', '--target-version', 'py38', '--line-length', '100'];
    const rules = ['--select', 'E,F,W,I,B,C4,N,RET,SIM,UP,PLE,PLW,S102,S307'];
    const linted = await run(ruff, ['check', ...width, ...rules, ...files('.py')]);
    expect(linted, linted.output).toMatchObject(FINE);
    const formatted = await run(ruff, ['format', '--diff', ...width, ...files('.py')]);
    expect(formatted, formatted.output).toMatchObject(FINE);
  });

  it('is formatted and linted like a person’s code: Node', async () => {
    for (const name of ['.oxfmtrc.json', '.oxlintrc.json'])
      copyFileSync(join(ROOT, name), join(folder, name));
    const bin = (name: string) => join(ROOT, 'node_modules', name, 'bin', name);
    const scripts = files('.mjs');
    const strict = ['-D', 'no-unused-vars', '-A', 'no-console', '--deny-warnings'];
    const linted = await run(process.execPath, [bin('oxlint'), ...strict, ...scripts]);
    expect(linted, linted.output).toMatchObject(FINE);
    const formatted = await run(process.execPath, [bin('oxfmt'), '--check', ...scripts]);
    expect(formatted, formatted.output).toMatchObject(FINE);
  });

  it.each(interpreters())(
    'is understood by Python $version, without a warning',
    async ({ path }) => {
      const compile =
        'import pathlib, sys\nfor name in sys.argv[1:]: compile(pathlib.Path(name).read_bytes(), name, "exec")';
      const compiled = await run(path, [
        '-I',
        '-S',
        '-B',
        '-W',
        'error',
        '-c',
        compile,
        ...files('.py'),
      ]);
      expect(compiled).toEqual({ code: 0, output: '' });
    },
  );

  it('is understood by Node and by a POSIX shell', async () => {
    for (const script of files('.mjs')) {
      const checked = await run(process.execPath, ['--check', script]);
      expect(checked).toEqual({ code: 0, output: '' });
    }
    for (const script of files('.sh'))
      expect(await run('sh', ['-n', script])).toEqual({ code: 0, output: '' });
  });

  it('names no place of this machine, and no mark of a template', () => {
    const places = [ROOT, folder, tmpdir(), homedir(), '# region', '// region', 'endregion'];
    for (const { name } of FOLDERS)
      for (const file of readdirSync(join(folder, name))) {
        const text = readFileSync(join(folder, name, file), 'utf8');
        for (const place of places) expect(text, `${name}/${file}`).not.toContain(place);
        expect(text, `${name}/${file}`).not.toMatch(/tracewright|"\/(?:home|root|tmp|opt)\//);
      }
  });
});

describe('with nothing of ours installed', { timeout: LIMIT_MS }, () => {
  const commandOf = (language: Language): readonly [string, ...string[]] => {
    const [python] = interpreters();
    if (language === 'shell') return ['sh'];
    if (language === 'node') return [process.execPath];
    return [python?.path ?? 'python3', '-I', '-S', '-B'];
  };

  it.each(['python', 'node'] as const)('a script in %s calls a function', async (language) => {
    const [program, ...flags] = commandOf(language);
    const script = join(folder, `${language}-call-exception`, scriptName(language));
    const ended = await run(program, [...flags, script], '/');
    expect(ended).toEqual({ code: 0, output: 'Errors: 0 / 20\n' });
  });

  it.each(['python', 'node', 'shell'] as const)(
    'a script in %s says that there is no server',
    async (language) => {
      const [program, ...flags] = commandOf(language);
      const script = join(folder, `${language}-traffic-exception`, scriptName(language));
      const ended = await run(program, [...flags, script], '/');
      expect(ended.code).toBe(125);
      expect(ended.output).toMatch(/^cannot test: http:\/\/127\.0\.0\.1:9 does not answer/);
    },
  );
});
