import { errorCode, TraceError } from '../../core/errors.ts';
import { maskArguments } from '../../core/secrets/mask.ts';
import { openFiles, type SessionFile, sessionFolder, SessionStore } from '../../session/store.ts';
import { printable, quoteForShell } from '../../core/text.ts';
import type { CommandResult, Environment, OptionValues } from '../command-line/command.ts';

/** What other verbs find out while a session is open is written into it: the command with credentials masked, the result in a line, the recording. */

const COMMAND_LIMIT = 400;
const SUMMARY_LIMIT = 2000;
/** Markdown files of a working directory in which a worklog is looked for unasked: 500 take 20 ms, and a folder of more is somebody's documentation. */
const WORKLOG_CANDIDATES = 500;

export class SessionLog {
  readonly #argv: readonly string[];
  readonly #environment: Environment;
  readonly #store: SessionStore;
  /** Null: the only one that is open when there is something to write. */
  readonly #named: SessionFile | null;

  private constructor(
    argv: readonly string[],
    environment: Environment,
    { store, named }: { readonly store: SessionStore; readonly named: SessionFile | null },
  ) {
    this.#argv = argv;
    this.#environment = environment;
    this.#store = store;
    this.#named = named;
  }

  /** Into the session that is named, else into the only one that is open, if there is one. Throws a TraceError where the named one is not there. */
  static open(
    argv: readonly string[],
    values: OptionValues,
    environment: Environment,
    store: SessionStore = storeAt(environment.cwd),
  ): SessionLog {
    const slug = values['session'];
    const named = typeof slug === 'string' ? store.find(slug) : null;
    return new SessionLog(argv, environment, { store, named });
  }

  /** Adds results behind what is there. Trouble with the file is said and takes nothing from them. */
  async write(results: readonly CommandResult[]): Promise<void> {
    let file = this.#named;
    try {
      file ??= this.#onlyOpen();
      if (file === null) return;
      const command = ['trace', ...maskArguments(this.#argv)].map(quoteForShell).join(' ');
      await this.#store.update(file, (document) => {
        for (const { summary, link } of results) {
          document.append('evidence', {
            timestamp: new Date().toISOString(),
            checked: printable(command, COMMAND_LIMIT),
            found: printable(summary, SUMMARY_LIMIT),
            ...(link === null ? {} : { link }),
          });
        }
      });
    } catch (error) {
      const why = error instanceof TraceError ? error.message : errorCode(error);
      const where = file === null ? 'a session' : file.slug;
      this.#environment.stderr.write(`trace: not written into ${where}: ${why}\n`);
    }
  }

  #onlyOpen(): SessionFile | null {
    const [file, ...others] = openFiles(this.#store);
    return file !== undefined && others.length === 0 ? file : null;
  }
}

const storeAt = (cwd: string): SessionStore =>
  new SessionStore(sessionFolder(cwd, null), {
    worklogs: cwd,
    worklogCandidates: WORKLOG_CANDIDATES,
  });
