import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { execFileSync } from 'node:child_process';
import { mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { Ajv2020 } from 'ajv/dist/2020.js';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { main } from '../../../src/cli.ts';
import { readSession } from '../../../src/session/session.ts';
import { startCli } from '../../e2e/cli.ts';
import { fakeEnvironment } from '../fake-environment.ts';

const isDocument = new Ajv2020().compile(
  JSON.parse(
    readFileSync(join(import.meta.dirname, '../../../docs/schema/session.schema.json'), 'utf8'),
  ) as object,
);

let cwd: string;
beforeEach(() => {
  cwd = mkdtempSync(join(tmpdir(), 'trace-session-'));
});
afterEach(() => rmSync(cwd, { recursive: true, force: true }));

const file = (slug: string): string => join(cwd, '.planning', 'debug', `${slug}.md`);

async function session(...args: string[]): Promise<{ code: number; out: string; err: string }> {
  const environment = fakeEnvironment({ cwd });
  const code = await main(['session', ...args], environment);
  return { code, out: environment.out(), err: environment.err() };
}

/** What a verb says as JSON. */
async function documentOf(...args: string[]): Promise<Readonly<Record<string, unknown>>> {
  const { out, err } = await session(...args, '--json');
  expect(err).toBe('');
  const document = JSON.parse(out) as Readonly<Record<string, unknown>>;
  expect(isDocument(document), JSON.stringify(isDocument.errors)).toBe(true);
  return document;
}

describe('an investigation', () => {
  it('goes from symptoms over hypotheses to evidence, each gate in its place', async () => {
    expect((await session('start', 'Requests hang after a retry')).out).toContain(
      'begun: requests-hang-after-a-retry',
    );
    expect((await session('continue')).out).toContain('gathering');
    expect(
      (await session('symptoms', '--actual', '1 in 100 hangs', '--frequency', 'intermittent')).code,
    ).toBe(0);
    const changed = await session('symptoms', '--actual', '2 in 100 hang');
    expect(changed).toMatchObject({ code: 1, out: '' });
    expect(changed.err).toContain('symptoms are fixed');
    for (const claim of ['ids are shared', 'the pool is empty', 'DNS is slow', 'four', 'five'])
      expect((await session('hypothesis', 'add', claim, '--refutes', 'x')).code).toBe(0);
    const sixth = await session('hypothesis', 'add', 'six', '--refutes', 'x');
    expect(sixth.code).toBe(1);
    expect(sixth.err).toContain('5 hypotheses are open');
    const lower = await session('focus', 'H2', '--test', 'count');
    expect(lower.code).toBe(1);
    expect(lower.err).toContain('H1 is likelier than H2');
    expect((await session('focus', 'H2', '--test', 'count', '--because', 'it is cheap')).code).toBe(
      0,
    );
    expect(
      (await session('hypothesis', 'eliminate', 'H2', '--evidence', 'it never was')).code,
    ).toBe(0);
    expect((await session('hypothesis', 'rank', 'H3', '1')).out).toContain('1. H3  2. H1');
    expect(
      (
        await session(
          'evidence',
          'add',
          '--checked',
          'log',
          '--found',
          '3 alike',
          '--hypothesis',
          'H1',
        )
      ).code,
    ).toBe(0);
    expect((await session('note', 'a', 'note')).code).toBe(0);
    const { session: now } = (await documentOf('status')) as { session: Record<string, unknown> };
    expect(now).toMatchObject({
      slug: 'requests-hang-after-a-retry',
      status: 'investigating',
      focus: { hypothesis: '', next_action: 'gather initial evidence' },
      symptoms: { actual: '1 in 100 hangs', frequency: 'intermittent', expected: '' },
      eliminated: [{ hypothesis: 'H2: the pool is empty', evidence: 'it never was' }],
    });
    expect((now['evidence'] as { found: string }[]).map(({ found }) => found)).toEqual([
      'H2 before H1: it is cheap',
      '3 alike',
      'a note',
    ]);
    const shown = (await session('status', 'requests-hang-after-a-retry')).out;
    expect(shown).toContain('1. H3 open  DNS is slow');
    expect(shown).toContain('eliminated    1');
  });

  it('takes what a person wrote into the file meanwhile', async () => {
    await session('start', 'x y');
    const path = file('x-y');
    writeFileSync(
      path,
      readFileSync(path, 'utf8').replace('actual:', 'actual: by hand') + '\nMy own words.\n',
    );
    await session('note', 'z');
    const text = readFileSync(path, 'utf8');
    expect(text).toContain('actual: by hand');
    expect(text).toContain('My own words.\n');
    expect((await session('status')).out).toContain('by hand');
  });
});

describe('which session', () => {
  it('is the only open one, or has to be named', async () => {
    const none = await session('note', 'z');
    expect(none).toMatchObject({ code: 3 });
    expect(none.err).toContain('there is no open session');
    await session('start', 'one');
    await session('start', 'two');
    const two = await session('note', 'z');
    expect(two).toMatchObject({ code: 2 });
    expect(two.err).toContain('one, two');
    expect((await session('note', 'z', '--session', 'two')).code).toBe(0);
    for (const verb of ['status', 'continue']) {
      const unknown = await session(verb, 'three');
      expect(unknown).toMatchObject({ code: 3 });
      expect(unknown.err).toContain(`no session 'three' to ${verb === 'status' ? 'show' : verb}`);
    }
  });

  it('may be a worklog in this folder, with the same gates', async () => {
    writeFileSync(join(cwd, 'README.md'), '# Not a session\n');
    const { out } = await session('start', 'it hangs', '--actual', 'x', '--worklog');
    expect(out).toContain(join(cwd, 'it-hangs.md'));
    expect((await session('list')).out).toMatch(/^ {2}1 {2}it-hangs {2}investigating/m);
    expect((await session('note', 'seen')).code).toBe(0);
    expect(await session('diagnose')).toMatchObject({ code: 1 });
    expect(readFileSync(join(cwd, 'it-hangs.md'), 'utf8')).toMatch(
      /## Investigation Log\n\n- timestamp: .*\n {2}checked: note\n {2}found: seen\n/,
    );
    expect((await session('abandon', '--because', 'y')).code).toBe(0);
    expect((await session('list')).out).toContain('No active');
  });

  it('that is damaged is named in one sentence, and keeps nobody from the others', async () => {
    await session('start', 'one');
    writeFileSync(file('one'), '---\nstatus: fixing\n');
    const one = `${file('one')} is no session: its frontmatter has no end`;
    for (const verb of [['status'], ['continue', 'one'], ['note', 'x'], ['attempt', 'y']]) {
      const { code, out, err } = await session(...verb);
      expect({ code, out }, verb.join(' ')).toEqual({ code: 3, out: '' });
      expect(err).toMatch(/^trace: .* is no session: its frontmatter has no end\n {7}Mend it/);
    }
    await session('start', 'two');
    const { code, out, err } = await session('list');
    expect({ code, err }).toEqual({ code: 0, err: `trace: ${one}\n` });
    expect(out).toMatch(/^ {2}1 {2}two/m);
    expect((await session('note', 'x', '--session', 'two')).code).toBe(0);
  });

  it('is listed with what is done in it', async () => {
    expect((await session('list')).out).toContain('No active debug sessions');
    await session('start', 'resolved things', '--actual', 'x');
    await session('start', 'two');
    writeFileSync(file('gsd'), '---\nstatus: resolved\n---\n');
    const { out } = await session('list');
    expect(out).toMatch(/^ {2}1 {2}resolved-things {2}investigating/m);
    expect(out).toMatch(/^ {2}2 {2}two/m);
    expect(out).not.toContain('gsd');
    expect(out).toContain('trace session continue resolved-things');
    expect((await session('list', '--all')).out).toContain('gsd');
    expect(await documentOf('list')).toMatchObject({ sessions: [{}, {}] });
    expect(await documentOf('continue', 'two')).toMatchObject({
      session: { slug: 'two' },
    });
    await documentOf('note', 'z', '--session', 'two');
  });
});

describe('a project that wants its sessions committed', () => {
  const git = (...args: string[]): string =>
    execFileSync('git', ['-c', 'user.name=a', '-c', 'user.email=a@example.com', ...args], {
      cwd,
      encoding: 'utf8',
    });

  it('has each change of theirs in a commit, and nothing else', async () => {
    git('init', '-q');
    git('config', 'user.name', 'a');
    git('config', 'user.email', 'a@example.com');
    mkdirSync(join(cwd, '.planning'));
    writeFileSync(join(cwd, '.planning', 'config.json'), '{"commit_docs": true}');
    writeFileSync(join(cwd, 'own.txt'), 'x');
    git('add', 'own.txt');
    await session('start', 'it hangs', '--no-environment');
    await session('note', 'x');
    expect((await session('list')).code).toBe(0);
    expect(git('log', '--format=%s', '--name-only').trim().split(/\n+/)).toEqual([
      'debug(it-hangs): session note',
      '.planning/debug/it-hangs.md',
      'debug(it-hangs): session start',
      '.planning/debug/it-hangs.md',
    ]);
    expect(git('status', '--porcelain')).toBe('A  own.txt\n?? .planning/config.json\n');
  });

  it('is told where git does not let it', async () => {
    mkdirSync(join(cwd, '.planning'));
    writeFileSync(join(cwd, '.planning', 'config.json'), '{"commit_docs": true}');
    const { code, err } = await session('start', 'it hangs', '--no-environment');
    expect(code).toBe(0);
    expect(err).toContain('not committed (commit_docs): ');
    expect(readSession('it-hangs', readFileSync(file('it-hangs'), 'utf8')).trigger).toBe(
      'it hangs',
    );
  });
});

describe('wrong usage', () => {
  it.each([
    [[], 'session needs a verb'],
    [['stat'], 'Did you mean trace session'],
    [['start'], 'what is wrong?'],
    [['evidence', 'add', '--checked', 'x'], '--checked and --found'],
    [['evidence', 'drop'], 'evidence can be added'],
    [['hypothesis', 'add', 'x'], '--refutes is missing'],
    [['hypothesis', 'toString', 'x'], 'One of add'],
    [['hypothesis', 'eliminate', 'H9', '--evidence', 'x'], 'no hypothesis H9'],
    [['focus'], 'focus on what?'],
    [['note'], 'a note of what?'],
    [['symptoms'], 'none was given'],
  ])('%j says what is meant', async (args, said) => {
    await session('start', 'it hangs');
    const { code, err, out } = await session(...args);
    expect({ code, out }).toEqual({ code: 2, out: '' });
    expect(err).toContain(said);
  });
});

describe('what people see', () => {
  it('keeps the lines of a log apart, shows the first ones, and fits into 80 columns', async () => {
    const log = Array.from({ length: 9 }, (_, i) => `line ${i} \u001b[31mred`).join('\n');
    await session('start', 'a title of so many words', '--errors', log, '--no-environment');
    const { out } = await session('status');
    expect(out).toMatch(/errors +line 0 \\x1b\[31mred\n +line 1 /);
    expect(out).toMatch(/line 5 .*\n +… 3 more lines\n/);
    expect(out).not.toContain('\\x0a');
    const list = await session('list');
    expect(list.out).toMatch(/investigating +\d{4}-\d\d-\d\d \d\d:\d\d\n/);
    for (const line of list.out.split('\n')) expect(line.length).toBeLessThanOrEqual(80);
  });
});

describe('what other verbs find out', () => {
  const load = async (...flags: string[]): Promise<{ code: number | null; err: string }> => {
    const server = createServer((_, response) => {
      response.setHeader('content-type', 'application/json');
      const usage = { prompt_tokens: 1, completion_tokens: 1 };
      const choices = [{ message: { content: 'a' }, finish_reason: 'stop' }];
      response.end(JSON.stringify({ choices, usage }));
    });
    await new Promise<void>((done) => server.listen(0, '127.0.0.1', done));
    const { port } = server.address() as AddressInfo;
    const ask = [
      'load',
      `http://127.0.0.1:${port}`,
      '-m',
      'x',
      '-n',
      '2',
      '--warmup',
      '0',
      '--no-stream',
    ];
    const secret = ['--api-key', 'sk-abcdefghijkl'];
    // The built program: its engine is a thread of its own.
    const { code, stderr } = await startCli([...ask, ...secret, '-q', ...flags], { cwd }).ended;
    server.close();
    return { code, err: stderr };
  };

  it('is written into the only open session, its command without credentials', async () => {
    await session('start', 'it hangs');
    expect(await load()).toMatchObject({ err: '' });
    expect(await load('--no-session')).toMatchObject({ err: '' });
    const text = readFileSync(file('it-hangs'), 'utf8');
    const { evidence } = readSession('it-hangs', text);
    expect(evidence).toHaveLength(1);
    expect(evidence[0]?.checked).toMatch(/^trace load http.* --api-key '\*\*\*' -q$/);
    expect(evidence[0]?.found).toMatch(/^(?:nothing found|F1 )/);
    expect(evidence[0]?.link).toContain('.tracewright');
    expect(text).not.toContain('abcdefghijkl');
  });

  it('is written into none of several, and into the one that is named', async () => {
    await session('start', 'one');
    await session('start', 'two');
    await load();
    await load('--session', 'two');
    const counts = ['one', 'two'].map(
      (slug) => readSession(slug, readFileSync(file(slug), 'utf8')).evidence.length,
    );
    expect(counts).toEqual([0, 1]);
    const gone = await load('--session', 'three');
    expect(gone.code).toBe(3);
    expect(gone.err).toContain("no session 'three'");
  });
});
