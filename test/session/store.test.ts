import { spawn } from 'node:child_process';
import {
  existsSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  rmSync,
  symlinkSync,
  writeFileSync,
} from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { pathToFileURL } from 'node:url';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { newSession } from '../../src/session/new-session.ts';
import {
  openFiles,
  sessionFolder,
  SessionStore,
  type SessionFile,
} from '../../src/session/store.ts';

const NOW = new Date('2026-11-23T10:00:00Z');
/** Compiled: a child of its own starts from JavaScript. */
const STORE = pathToFileURL(
  join(import.meta.dirname, '..', '..', 'dist', 'src', 'session', 'store.js'),
).href;

let folder: string;
let store: SessionStore;
beforeEach(() => {
  folder = mkdtempSync(join(tmpdir(), 'trace-session-'));
  store = new SessionStore(folder);
});
afterEach(() => rmSync(folder, { recursive: true, force: true }));

const text = newSession({
  trigger: 'it hangs',
  goal: 'find_and_fix',
  now: NOW,
  symptoms: {},
  outside: false,
  worklog: null,
});
const begin = (title = 'it hangs'): SessionFile => store.create(title, text, NOW);

/** A process that adds pieces of evidence, one after the other, until `count` or killed. */
function adder(name: string, count: number) {
  const program = `
    const { SessionStore } = await import(${JSON.stringify(STORE)});
    const store = new SessionStore(${JSON.stringify(folder)});
    for (let i = 0; i < ${count}; i++) {
      await store.update(store.find('it-hangs'), (document) => document.append('evidence', { checked: '${name}', found: String(i) }));
      if (i === 3) console.log('adding');
      // The lock has no queue: who takes it again at once may keep others out.
      await new Promise((go) => setTimeout(go, 5 * Math.random()));
    }`;
  const child = spawn(process.execPath, ['--input-type=module', '-e', program], {
    stdio: ['ignore', 'pipe', 'inherit'],
  });
  const ended = new Promise<number | null>((resolve) => child.on('close', resolve));
  return { child, ended };
}

describe('two processes', () => {
  it('that add 200 pieces of evidence each lose none', async () => {
    const file = begin();
    const codes = await Promise.all([adder('a', 200).ended, adder('b', 200).ended]);
    expect(codes).toEqual([0, 0]);
    const { evidence } = store.read(file);
    for (const name of ['a', 'b']) {
      const found = evidence.filter(({ checked }) => checked === name).map((one) => one.found);
      expect(found).toEqual(Array.from({ length: 200 }, (_, i) => String(i)));
    }
    expect(readdirSync(folder)).toEqual(['it-hangs.md']);
  }, 60_000);

  it('of which one is killed while it writes leave a whole file, and do not wait for the dead', async () => {
    const file = begin();
    for (let round = 0; round < 4; round++) {
      const { child, ended } = adder(`r${round}`, 100_000);
      await new Promise((resolve) => child.stdout.once('data', resolve));
      // At a moment when it has the lock: what it leaves behind is then a lock of nobody, and perhaps half a file.
      while (!readdirSync(folder).some((name) => name !== 'it-hangs.md')) await sleep(0);
      child.kill('SIGKILL');
      await ended;
      const before = store.read(file).evidence.length;
      await store.update(file, (document) => {
        document.append('evidence', { checked: 'test', found: 'x' });
      });
      const { evidence, status, trigger } = store.read(file);
      expect(evidence.length).toBe(before + 1);
      expect({ status, trigger }).toEqual({ status: 'gathering', trigger: 'it hangs' });
    }
  }, 60_000);
});

describe('a session', () => {
  it('is found by its own name alone', () => {
    begin();
    mkdirSync(join(folder, 'sub'));
    writeFileSync(join(folder, 'sub', 'x.md'), 'secret');
    for (const slug of ['../it-hangs', 'sub/x', '/etc/passwd', '..', '', 'it-hang', 'IT-HANGS'])
      expect(() => store.find(slug), slug).toThrow(
        expect.objectContaining({ code: 'ERR_NO_SESSION', exitCode: 3 }),
      );
    expect(store.find('it-hangs').path).toBe(join(folder, 'it-hangs.md'));
    expect(store.find('it-hangs.md').slug).toBe('it-hangs');
  });

  it('is no link out of the folder, no folder, no collection, no hidden file', () => {
    begin();
    const outside = mkdtempSync(join(tmpdir(), 'trace-outside-'));
    writeFileSync(join(outside, 'secret.md'), 'secret');
    symlinkSync(join(outside, 'secret.md'), join(folder, 'link.md'));
    symlinkSync('it-hangs.md', join(folder, 'alias.md'));
    symlinkSync('nowhere.md', join(folder, 'dangling.md'));
    symlinkSync(outside, join(folder, 'resolved'));
    mkdirSync(join(folder, 'folder.md'));
    writeFileSync(join(folder, 'knowledge-base.md'), '# known');
    writeFileSync(join(folder, '.hidden.md'), 'x');
    writeFileSync(join(folder, 'large.md'), Buffer.alloc(5 * 2 ** 20));
    expect(store.files({ resolved: true }).map(({ slug }) => slug)).toEqual(['alias', 'it-hangs']);
    expect(() => store.move(store.find('it-hangs'), { resolved: true, now: NOW })).toThrow(
      expect.objectContaining({ code: 'ERR_SESSION_WRITE' }),
    );
    expect(readdirSync(outside)).toEqual(['secret.md']);
    rmSync(outside, { recursive: true });
  });

  it.each([
    ['was emptied', Buffer.alloc(0), /is no session: it is empty/],
    ['has bytes of something else', Buffer.from('---\n\u0000'), /it is not text in UTF-8/],
    ['is in another encoding', Buffer.from('---\nstatus: caf\xe9\n---\n', 'latin1'), /UTF-8/],
    ['was cut off', Buffer.from('---\nstatus: fixing\ntrig'), /its frontmatter has no end/],
  ])('that %s is refused, and left as it is', async (_, bytes, why) => {
    const file = begin();
    writeFileSync(file.path, bytes);
    const refusal = { code: 'ERR_SESSION_DAMAGED', exitCode: 3 };
    expect(() => store.read(file)).toThrow(expect.objectContaining(refusal));
    expect(() => store.read(file)).toThrow(why);
    const note = store.update(file, (document) => document.append('evidence', { found: 'x' }));
    await expect(note).rejects.toMatchObject(refusal);
    expect(readFileSync(file.path)).toEqual(bytes);
    // Who works in the only session that is there is told so.
    expect(openFiles(store)).toEqual([file]);
  });

  it('may hold a log of more lines than a function takes arguments', async () => {
    const file = begin();
    const logs = Array.from({ length: 200_000 }, (_, i) => `${i}`).join('\n');
    await store.update(file, (document) => document.setField('symptoms', 'logs', logs));
    expect(store.read(file).symptoms['logs']).toBe(logs);
  });

  it('of the same title gets the next name', () => {
    expect([begin(), begin(), begin()].map(({ slug }) => slug)).toEqual([
      'it-hangs',
      'it-hangs-2',
      'it-hangs-3',
    ]);
  });

  it('is moved to resolved and back, never over another', () => {
    const moved = store.move(begin(), { resolved: true, now: NOW });
    expect(moved.path).toBe(join(folder, 'resolved', 'it-hangs.md'));
    writeFileSync(join(folder, 'it-hangs.md'), text);
    const second = store.move(store.find('it-hangs'), { resolved: true, now: NOW });
    expect(second.slug).toBe('it-hangs-2');
    expect(store.files()).toEqual([]);
    expect(
      store.files({ resolved: true }).map(({ slug, isResolved }) => [slug, isResolved]),
    ).toEqual([
      ['it-hangs', true],
      ['it-hangs-2', true],
    ]);
  });

  it('is not written by an edit that throws, nor by one that changes nothing', async () => {
    const file = begin();
    const before = readFileSync(file.path, 'utf8');
    await expect(
      store.update(file, (document) => {
        document.setProperty('status', 'resolved');
        throw new Error('refused');
      }),
    ).rejects.toThrow('refused');
    await store.update(file, () => 0);
    expect(readFileSync(file.path, 'utf8')).toBe(before);
    expect(readdirSync(folder)).toEqual(['it-hangs.md']);
  });
});

describe('the folder', () => {
  it('is the nearest .planning/debug above, not above the repository', () => {
    const project = join(folder, 'project');
    const below = join(project, 'a', 'b');
    mkdirSync(below, { recursive: true });
    mkdirSync(join(folder, '.planning', 'debug'), { recursive: true });
    expect(sessionFolder(below, null)).toBe(join(folder, '.planning', 'debug'));
    mkdirSync(join(project, '.git'));
    expect(sessionFolder(below, null)).toBe(join(below, '.planning', 'debug'));
    mkdirSync(join(project, '.planning', 'debug'), { recursive: true });
    expect(sessionFolder(below, null)).toBe(join(project, '.planning', 'debug'));
    expect(sessionFolder(below, '/x')).toBe('/x');
    expect(existsSync(join(below, '.planning'))).toBe(false);
  });
});

describe('a working directory full of Markdown', () => {
  it('is not read through for worklogs unasked; one that is named is found', () => {
    const worklogs = mkdtempSync(join(tmpdir(), 'trace-worklogs-'));
    const worklog = newSession({
      trigger: 'it hangs',
      goal: 'find_and_fix',
      now: NOW,
      symptoms: {},
      outside: false,
      worklog: 'it hangs',
    });
    writeFileSync(join(worklogs, 'it-hangs.md'), worklog);
    const bounded = new SessionStore(folder, { worklogs, worklogCandidates: 3 });
    for (const name of ['a', 'b']) writeFileSync(join(worklogs, `${name}.md`), '# A page\n');
    expect(bounded.files().map(({ slug }) => slug)).toEqual(['it-hangs']);
    writeFileSync(join(worklogs, 'c.md'), '# A page\n');
    expect(bounded.files()).toEqual([]);
    expect(bounded.find('it-hangs').path).toBe(join(worklogs, 'it-hangs.md'));
    expect(() => bounded.find('c')).toThrow("no session 'c'");
    expect(new SessionStore(folder, { worklogs }).files()).toHaveLength(1);
    rmSync(worklogs, { recursive: true, force: true });
  });
});
