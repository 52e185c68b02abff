import { randomBytes } from 'node:crypto';
import {
  accessSync,
  closeSync,
  constants,
  fsyncSync,
  lstatSync,
  openSync,
  readdirSync,
  realpathSync,
  renameSync,
  statSync,
  unlinkSync,
  writeFileSync,
} from 'node:fs';
import { basename, dirname, join } from 'node:path';
import { errorCode, TraceError } from '../core/errors.ts';
import { EXIT } from '../core/exit-code.ts';
import { printable } from '../core/text.ts';
import type { Session } from '../core/session.ts';
import { damaged, damageOf } from './damage.ts';
import type { SessionDocument } from './document.ts';
import { withLock } from './file-lock.ts';
import { readSession, sessionOf } from './session.ts';
import { isWorklog, openDocument } from './shape.ts';
import { slugOf } from './slug.ts';
import { makeFolder } from '../platform/make-folder.ts';
import { readBeginSync, readOutsideSync, UnreadFile } from '../platform/outside-file.ts';

/** The folder in which sessions are kept, one Markdown file each: `.planning/debug`, as GSD has it. */

/** A file beyond this is no session: it is not listed. Reports of ten megabytes are cut before they come here. */
const SIZE_LIMIT = 4 * 1024 * 1024;
const RESOLVED = 'resolved';
/** GSD's collection of what earlier sessions taught; no session. */
const NO_SESSION: ReadonlySet<string> = new Set(['knowledge-base.md']);

/** A session's file. */
export interface SessionFile {
  readonly path: string;
  readonly slug: string;
  readonly isResolved: boolean;
}

export class SessionStore {
  readonly folder: string;
  /** Where worklogs lie, among other files; null: they are not looked for. */
  readonly #worklogs: string | null;
  readonly #worklogCandidates: number;

  /** `worklogCandidates`: in a folder of more Markdown files no worklog is listed; one that is named is found all the same. */
  constructor(
    folder: string,
    {
      worklogs = null,
      worklogCandidates = Infinity,
    }: { readonly worklogs?: string | null; readonly worklogCandidates?: number } = {},
  ) {
    this.folder = folder;
    this.#worklogs = worklogs;
    this.#worklogCandidates = worklogCandidates;
  }

  /** The sessions that are there, by file name; those in `resolved/` behind the others. */
  files({ resolved = false }: { readonly resolved?: boolean } = {}): readonly SessionFile[] {
    const active = [...this.#filesIn(this.folder), ...this.#worklogFiles()];
    return resolved
      ? [...active, ...this.#filesIn(join(this.folder, RESOLVED), { isResolved: true })]
      : active;
  }

  /** The file of a session, active ones first. Throws a TraceError when there is none of that name. */
  find(slug: string, purpose: string = ''): SessionFile {
    const name = slug.replace(/\.md$/, '');
    // Looked up among those that are there, and never made into a path: `../x` is simply not among them.
    const [file] = [
      ...this.#filesIn(this.folder, { name }),
      ...this.#worklogFiles(name),
      ...this.#filesIn(join(this.folder, RESOLVED), { name, isResolved: true }),
    ];
    if (file !== undefined) return file;
    const open = this.files().map((one) => one.slug);
    throw new TraceError(
      'ERR_NO_SESSION',
      `no session '${printable(slug, 80)}'${purpose === '' ? '' : ` ${purpose}`}`,
      {
        exitCode: EXIT.notFound,
        remedy:
          open.length === 0
            ? `There is none in ${printable(this.folder)}; trace session start begins one.`
            : `There are: ${open
                .slice(0, 10)
                .map((one) => printable(one, 60))
                .join(', ')}${open.length > 10 ? ', …' : ''}`,
      },
    );
  }

  /** Throws a TraceError where the file is damaged. */
  read(file: SessionFile): Session {
    return readSession(file.slug, readWhole(file.path));
  }

  /** Makes a new session's file under the first free slug of `title`. */
  create(title: string, text: string, now: Date): SessionFile {
    const folder = isWorklog(text) ? (this.#worklogs ?? this.folder) : this.folder;
    makeWritable(folder);
    const taken = new Set(this.files({ resolved: true }).map((one) => one.slug));
    for (;;) {
      const slug = slugOf(title, { taken, now });
      const path = join(folder, `${slug}.md`);
      try {
        // A session that another process begins at this moment keeps its name.
        closeSync(openSync(path, 'wx', 0o644));
      } catch (error) {
        if (errorCode(error) !== 'EEXIST') throw unwritable(path, error);
        taken.add(slug);
        continue;
      }
      writeWhole(path, text);
      return { path, slug, isResolved: false };
    }
  }

  /**
   * Changes a session's file and gives what `edit` gave. Writers take turns; a file that a person saved meanwhile is read again. `edit` may throw, and then
   * nothing is written.
   */
  async update<T>(
    file: SessionFile,
    edit: (document: SessionDocument, session: Session) => T,
    now: Date = new Date(),
  ): Promise<T> {
    const lock = join(dirname(file.path), `.${basename(file.path)}.lock`);
    return withLock(lock, () => {
      for (;;) {
        const before = stampOf(file.path);
        const text = readWhole(file.path);
        const document = openDocument(text);
        const result = edit(document, sessionOf(file.slug, document));
        if (document.toString() === text) return result;
        document.setProperty('updated', now.toISOString());
        if (stampOf(file.path) !== before) continue;
        writeWhole(file.path, document.toString());
        return result;
      }
    });
  }

  /** Moves a session into `resolved/`, or back; under its own name, or the next that is free. A worklog stays where it is. */
  move(file: SessionFile, { resolved, now }: { resolved: boolean; now: Date }): SessionFile {
    if (isWorklog(readText(file.path))) return file;
    const folder = resolved ? join(this.folder, RESOLVED) : this.folder;
    makeWritable(folder);
    if (resolved && !lstatSync(folder).isDirectory()) throw unwritable(folder, 'a symbolic link');
    const taken = new Set(this.#filesIn(folder, { isResolved: resolved }).map((one) => one.slug));
    const slug = taken.has(file.slug) ? slugOf(file.slug, { taken, now }) : file.slug;
    const path = join(folder, `${slug}.md`);
    renameSync(file.path, path);
    return { path, slug, isResolved: resolved };
  }

  /** Those of the working directory that are sessions, or the one of that name; whatever else lies there is none of ours. */
  #worklogFiles(name: string | null = null): readonly SessionFile[] {
    if (this.#worklogs === null || this.#worklogs === this.folder) return [];
    const most = name === null ? this.#worklogCandidates : Infinity;
    return this.#filesIn(this.#worklogs, { name, most }).filter(({ path }) =>
      isWorklog(readText(path, 256)),
    );
  }

  /** The sessions in a folder, or the one of that name; none where there are more than `most`. */
  #filesIn(
    folder: string,
    {
      isResolved = false,
      name: only = null,
      most = Infinity,
    }: {
      readonly isResolved?: boolean;
      readonly name?: string | null;
      readonly most?: number;
    } = {},
  ): readonly SessionFile[] {
    let names: readonly string[];
    try {
      // The folder that was asked for may be a link; one below it that leads elsewhere is not ours.
      if (isResolved && !lstatSync(folder).isDirectory()) return [];
      names = readdirSync(folder);
    } catch {
      return [];
    }
    const candidates = names.filter(
      (name) =>
        name.endsWith('.md') &&
        !name.startsWith('.') &&
        !NO_SESSION.has(name) &&
        (only === null || name === `${only}.md`),
    );
    if (candidates.length > most) return [];
    return candidates
      .map((name) => ({ path: join(folder, name), slug: name.slice(0, -3), isResolved }))
      .toSorted((a, b) => (a.slug < b.slug ? -1 : 1))
      .filter(({ path }) => isOwnFile(path, folder));
  }
}

/** The files of the sessions that are neither resolved nor abandoned. */
export function openFiles(store: SessionStore): readonly SessionFile[] {
  return store.files().filter((file) => {
    try {
      const { status } = store.read(file);
      return status !== 'resolved' && status !== 'abandoned';
    } catch (error) {
      // A damaged one may be the one that is meant: whoever reads it says so.
      if (error instanceof TraceError) return true;
      throw error;
    }
  });
}

/** The folder of the sessions: `asked`, else the `.planning/debug` of this folder or the nearest above it that has one. */
export function sessionFolder(cwd: string, asked: string | null): string {
  if (asked !== null) return asked;
  for (let folder = cwd; ; folder = dirname(folder)) {
    if (isFolder(join(folder, '.planning', 'debug'))) return join(folder, '.planning', 'debug');
    if (isThere(join(folder, '.git')) || dirname(folder) === folder) break;
  }
  return join(cwd, '.planning', 'debug');
}

/** A regular file of the folder itself, neither a link out of it nor a device. */
function isOwnFile(path: string, folder: string): boolean {
  try {
    const stat = lstatSync(path);
    accessSync(path, constants.R_OK);
    if (stat.isFile()) return stat.size <= SIZE_LIMIT;
    if (!stat.isSymbolicLink()) return false;
    const target = realpathSync(path);
    return dirname(target) === realpathSync(folder) && statSync(target).size <= SIZE_LIMIT;
  } catch {
    return false;
  }
}

/** The text of a session. Throws a TraceError where it is none any more. */
function readWhole(path: string): string {
  const bytes = readBytes(path);
  const damage = damageOf(bytes);
  if (damage !== null) throw damaged(path, damage);
  return bytes.toString('utf8');
}

/** The text, or so many bytes of its beginning. */
function readText(path: string, begin?: number): string {
  return readBytes(path, begin).toString('utf8');
}

function readBytes(path: string, begin?: number): Buffer {
  try {
    return begin === undefined ? readOutsideSync(path, SIZE_LIMIT) : readBeginSync(path, begin);
  } catch (error) {
    if (!(error instanceof UnreadFile)) throw error;
    throw new TraceError('ERR_SESSION_READ', `cannot read ${printable(path)}: ${error.code}`, {
      exitCode: EXIT.usage,
      remedy: 'A session is a regular file. Put another thing of that name away.',
      cause: error,
    });
  }
}

/** The old file or the new one is there at any moment, whatever kills this process. */
function writeWhole(path: string, text: string): void {
  const target = realpathSync(path);
  const partial = join(
    dirname(target),
    `.${basename(target)}.${randomBytes(6).toString('hex')}.tmp`,
  );
  try {
    const file = openSync(partial, 'wx', statSync(target).mode & 0o777);
    try {
      writeFileSync(file, text);
      fsyncSync(file);
    } finally {
      closeSync(file);
    }
    renameSync(partial, target);
  } catch (error) {
    try {
      unlinkSync(partial);
    } catch {
      // It was not made, or is no longer there.
    }
    throw unwritable(path, error);
  }
}

/** What changes when somebody saves the file. */
function stampOf(path: string): string {
  const { ino, size, mtimeNs } = statSync(path, { bigint: true });
  return `${ino} ${size} ${mtimeNs}`;
}

function isFolder(path: string): boolean {
  try {
    return statSync(path).isDirectory();
  } catch {
    return false;
  }
}

function isThere(path: string): boolean {
  try {
    lstatSync(path);
    return true;
  } catch {
    return false;
  }
}

function makeWritable(folder: string): void {
  try {
    makeFolder(folder);
  } catch (error) {
    throw unwritable(folder, error);
  }
}

function unwritable(path: string, error: unknown): TraceError {
  return new TraceError(
    'ERR_SESSION_WRITE',
    `cannot write ${printable(path)}: ${errorCode(error)}`,
    {
      exitCode: EXIT.usage,
      remedy: 'What was there is unchanged. Make room, or choose another folder with --dir.',
      cause: error,
    },
  );
}
