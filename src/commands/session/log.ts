import { TraceError } from '../../core/errors.ts';
import { maskCredentials } from '../../platform/target-title.ts';
import { type SessionFile, sessionFolder, SessionStore } from '../../session/store.ts';
import { printable, quoteForShell } from '../../core/text.ts';
import type { CommandResult, Environment, OptionValues } from '../command-line/command.ts';
import { openFiles } from './opening.ts';

/** What other verbs find out while a session is open is written into it: the command with credentials masked, the result in a line, the recording. */

const COMMAND_LIMIT = 400;

export class SessionLog {
  /** What the verb is run in: as it was given, and told of results. */
  readonly environment: Environment;
  readonly #argv: readonly string[];
  readonly #store: SessionStore;
  readonly #file: SessionFile | null;
  readonly #results: CommandResult[] = [];

  private constructor(
    argv: readonly string[],
    environment: Environment,
    { store, file }: { readonly store: SessionStore; readonly file: SessionFile | null },
  ) {
    this.#argv = argv;
    this.#store = store;
    this.#file = file;
    this.environment = { ...environment, onResult: (result) => this.#results.push(result) };
  }

  /** Into the session that is named, else into the only one that is open, if there is one. Throws a TraceError where the named one is not there. */
  static open(
    argv: readonly string[],
    values: OptionValues,
    environment: Environment,
    store: SessionStore = storeAt(environment.cwd),
  ): SessionLog {
    const named = values['session'];
    if (typeof named === 'string')
      return new SessionLog(argv, environment, { store, file: store.find(named) });
    const [file, ...others] = values['no-session'] === true ? [] : openFiles(store);
    const isOne = file !== undefined && others.length === 0;
    return new SessionLog(argv, environment, { store, file: isOne ? file : null });
  }

  /** Adds what came of it, behind what is there. Trouble with the file is said and takes nothing from the result. */
  async write(): Promise<void> {
    const file = this.#file;
    if (file === null || this.#results.length === 0) return;
    const command = ['trace', ...maskCredentials(this.#argv)].map(quoteForShell).join(' ');
    try {
      await this.#store.update(file, (document) => {
        for (const { summary, link } of this.#results) {
          const timestamp = new Date().toISOString();
          const checked = printable(command, COMMAND_LIMIT);
          const linked = link === null ? {} : { link };
          document.append('evidence', { timestamp, checked, found: summary, ...linked });
        }
      });
    } catch (error) {
      if (!(error instanceof TraceError)) throw error;
      this.environment.stderr.write(`trace: not written into ${file.slug}: ${error.message}\n`);
    }
  }
}

const storeAt = (cwd: string): SessionStore =>
  new SessionStore(sessionFolder(cwd, null), { worklogs: cwd });
