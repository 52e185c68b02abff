import { LookBudget } from './look-budget.ts';
import { type OpenedPython, openPython, type PythonReader } from './reader.ts';
import { TaskReader } from './task-reader.ts';

/**
 * One reader of a Python process, one of its tasks, and one budget, for all on this thread that look at it now and then: what one has found out
 * the others need not, and to open it takes 20 ms.
 */
export class SharedPython {
  readonly budget: LookBudget;
  /** The run is one that is left on for days (a flight recorder): what costs much is done seldom while nothing seems to be wrong. */
  readonly isLeftOn: boolean;
  #opened: OpenedPython | null = null;
  #tasks: TaskReader | null = null;
  #users = 0;

  constructor({
    budget = new LookBudget(),
    isLeftOn = false,
  }: { readonly budget?: LookBudget; readonly isLeftOn?: boolean } = {}) {
    this.budget = budget;
    this.isLeftOn = isLeftOn;
  }

  /** Opened when first asked for. Who got a reader calls close() once, and does not close the reader. */
  open(pid: number): OpenedPython {
    this.#opened ??= openPython(pid);
    const opened = this.#opened;
    if (opened.ok) this.#users++;
    // What could not be opened may be asked for again.
    else this.#opened = null;
    return opened;
  }

  /** Null where nobody has it open, or its memory may no longer be read. */
  get tasks(): TaskReader | null {
    if (this.#tasks === null && this.#opened?.ok === true)
      this.#tasks = taskReader(this.#opened.reader);
    return this.#tasks;
  }

  close(): void {
    if (--this.#users > 0) return;
    this.#tasks?.close();
    this.#tasks = null;
    if (this.#opened?.ok === true) this.#opened.reader.close();
    this.#opened = null;
  }
}

/** Null when the process has gone. */
function taskReader(reader: PythonReader): TaskReader | null {
  try {
    return new TaskReader(reader);
  } catch {
    return null;
  }
}
