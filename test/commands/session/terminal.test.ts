import { execFile } from 'node:child_process';
import {
  existsSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  realpathSync,
  rmSync,
  writeFileSync,
} from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { main } from '../../../src/cli.ts';
import { readSession } from '../../../src/session/session.ts';
import type { Session } from '../../../src/core/session.ts';
import { fakeEnvironment } from '../fake-environment.ts';

/** The built program on a terminal of its own, as a person has it. */

const MAIN = join(import.meta.dirname, '../../../dist/src/main.js');
const TERMINAL = join(import.meta.dirname, '../../e2e/job-control.py');

let cwd: string;
beforeEach(() => {
  cwd = realpathSync(mkdtempSync(join(tmpdir(), 'trace-terminal-')));
});
afterEach(() => rmSync(cwd, { recursive: true, force: true }));

async function begin(...args: readonly string[]): Promise<void> {
  const environment = fakeEnvironment({ cwd });
  expect(await main(['session', 'start', ...args, '--no-environment'], environment)).toBe(0);
}

function sessionOf(slug: string): Session {
  const path = join(cwd, '.planning', 'debug', `${slug}.md`);
  return readSession(slug, readFileSync(path, 'utf8'));
}

/** An editor that is a line of the shell, with the file as `$1`. */
function editor(line: string): Record<string, string> {
  writeFileSync(join(cwd, 'editor.sh'), `${line}\n`);
  return { VISUAL: '', EDITOR: `sh ${join(cwd, 'editor.sh')}` };
}

/** What the terminal shows, and how the program ended. `typed`: what is typed once a text was shown. */
async function onTerminal(
  args: readonly string[],
  typed: readonly (readonly [string, string])[],
  env: Readonly<Record<string, string>> = {},
): Promise<{ shown: string; code: number }> {
  const { stdout } = await promisify(execFile)(
    'python3',
    [TERMINAL, JSON.stringify(typed), process.execPath, MAIN, 'session', ...args],
    { cwd, env: { ...process.env, NO_COLOR: '1', ...env } },
  );
  const shown = stdout.replaceAll('\r\n', '\n');
  return { shown, code: Number(/ended (-?\d+)$/m.exec(shown)?.[1]) };
}

describe('trace session start on a terminal, with nothing behind it', () => {
  it('goes on with the open session whose number is typed', async () => {
    await begin('first');
    await begin('second', '--actual', 'it hangs');
    const { shown, code } = await onTerminal(['start'], [['(Enter: ', '2\n']]);
    expect(shown).toMatch(/^ +1 {2}first {2}gathering\n +2 {2}second {2}investigating$/m);
    expect(shown).toMatch(/^second {2}investigating$/m);
    expect(shown).toContain('3 more hypotheses');
    expect(code).toBe(0);
    expect(readdirSync(join(cwd, '.planning', 'debug'))).toEqual(['first.md', 'second.md']);
  }, 60_000);

  it('begins another with the text that is typed, and asks for what is missing', async () => {
    await begin('first');
    const { shown, code } = await onTerminal(
      ['start', '--no-environment'],
      [
        ['(Enter: ', 'retries are lost\n'],
        ['What should happen?', '\n'],
        ['What happens?', '1 in 100 is lost\n'],
        ['What is printed?', '\u0004'],
      ],
    );
    expect(shown).toContain('begun: retries-are-lost');
    expect(code).toBe(0);
    const { symptoms, status } = sessionOf('retries-are-lost');
    expect(symptoms).toMatchObject({ expected: '', actual: '1 in 100 is lost', errors: '' });
    expect(status).toBe('investigating');
  }, 60_000);

  it('asks which source, takes a file there, or a report from the editor', async () => {
    writeFileSync(
      join(cwd, 'report.md'),
      '### Expected Behavior\n\n200\n\n### Actual Behavior\n\n409\n',
    );
    const file = await onTerminal(
      ['start', '--no-environment', '--title', 'one'],
      [
        ['What is wrong?', '\n'],
        ['A file, the address', 'report.md\n'],
        ['What is printed?', '\u0004'],
      ],
    );
    expect(file.code).toBe(0);
    expect(sessionOf('one').symptoms).toMatchObject({ expected: '200', actual: '409' });
    const written = await onTerminal(
      ['start', '--no-environment'],
      [
        ['Enter: a report', '\n'],
        ['your editor', '\n'],
        ['What should happen?', 'all arrive\n'],
        ['What is printed?', '\u0004'],
      ],
      editor(`printf 'tokens are lost\\n\\nActual: 3 of 500 are lost\\n' > "$1"`),
    );
    expect(written.code).toBe(0);
    expect(sessionOf('tokens-are-lost').symptoms).toMatchObject({
      expected: 'all arrive',
      actual: '3 of 500 are lost',
    });
  }, 60_000);

  it('leaves nothing behind at Ctrl-C and at the end of input', async () => {
    const interrupted = await onTerminal(
      ['start', '--no-environment'],
      [
        ['What is wrong?', 'a fault\n'],
        ['What should happen?', '\u0003'],
      ],
    );
    expect(interrupted.code).toBe(-2);
    const ended = await onTerminal(['start', '--no-environment'], [['What is wrong?', '\u0004']]);
    expect(ended.code).toBe(2);
    expect(existsSync(join(cwd, '.planning'))).toBe(false);
  }, 60_000);
});

describe('the editor', () => {
  it('writes a note, with what stands below its mark left out', async () => {
    await begin('x');
    const { code } = await onTerminal(
      ['note'],
      [],
      editor(`cp "$1" seen; printf '\\n# two replicas\\n\\nanswer\\n' | cat - "$1" > t; mv t "$1"`),
    );
    expect(code).toBe(0);
    expect(sessionOf('x').evidence.map(({ found }) => found)).toEqual(['# two replicas\n\nanswer']);
    expect(readFileSync(join(cwd, 'seen'), 'utf8')).toContain('A note for x.');
  }, 60_000);

  it('that is closed empty, or fails, changes nothing; a Ctrl-C in it is its own', async () => {
    await begin('x');
    const before = readFileSync(join(cwd, '.planning', 'debug', 'x.md'), 'utf8');
    const empty = await onTerminal(['note'], [], editor('true'));
    expect(empty).toMatchObject({ code: 2, shown: expect.stringContaining('nothing was written') });
    const failing = await onTerminal(['note'], [], editor('echo lost > "$1"; exit 3'));
    expect(failing.shown).toMatch(
      /the editor \(sh .*editor\.sh\) ended with 3\n +Nothing was done/,
    );
    expect(failing.code).toBe(2);
    const absent = await onTerminal(['note'], [], { VISUAL: 'no-such-editor', EDITOR: '' });
    expect(absent.shown).toContain('(no-such-editor) cannot be started: ENOENT');
    expect(readFileSync(join(cwd, '.planning', 'debug', 'x.md'), 'utf8')).toBe(before);
    const kept = await onTerminal(
      ['note'],
      [['ready', '\u0003']],
      editor(`trap 'echo kept > "$1"; exit 0' INT; echo ready; while :; do sleep 0.1; done`),
    );
    expect(kept.code).toBe(0);
    expect(sessionOf('x').evidence.map(({ found }) => found)).toEqual(['kept']);
  }, 60_000);

  it('has a part for each field of a hypothesis and of symptoms', async () => {
    await begin('x');
    const fill = (flag: string, text: string): string => `s/^## ${flag}$/&\\n${text}/`;
    const hypothesis = await onTerminal(
      ['hypothesis', 'add'],
      [],
      editor(`sed -i '${fill('claim', 'ids are shared')};${fill('refutes', 'unique ids')}' "$1"`),
    );
    expect(hypothesis.code).toBe(0);
    expect(sessionOf('x').hypotheses).toMatchObject([
      { id: 'H1', claim: 'ids are shared', refutes: 'unique ids', confirms: '' },
    ]);
    await onTerminal(['symptoms'], [], editor(`sed -i '${fill('actual', 'it hangs')}' "$1"`));
    expect(sessionOf('x')).toMatchObject({
      status: 'investigating',
      symptoms: { actual: 'it hangs', expected: '' },
    });
  }, 60_000);

  it('is never opened without a terminal, nor with --json', async () => {
    await begin('x');
    const env = editor('echo opened > opened');
    const piped = await promisify(execFile)(process.execPath, [MAIN, 'session', 'note'], {
      cwd,
      env: { ...process.env, ...env },
    }).catch((error: unknown) => error);
    expect(piped).toMatchObject({ code: 2, stderr: expect.stringContaining('a note of what?') });
    expect((await onTerminal(['note', '--json'], [], env)).code).toBe(2);
    expect(existsSync(join(cwd, 'opened'))).toBe(false);
  }, 60_000);
});
