import { LookBudget } from './look-budget.ts';
import type { PythonReader } from './reader.ts';
import { TaskReader } from './task-reader.ts';

/** One reader of tasks, and one budget, for all that look at the tasks of a process: what one has found out the other need not. */
export class SharedTasks {
  readonly budget: LookBudget = new LookBudget();
  #reader: TaskReader | null = null;
  #users = 0;

  /** Each caller calls close() once. Throws the errno error where the memory of the process may not be read. */
  open(reader: PythonReader): TaskReader {
    this.#reader ??= new TaskReader(reader);
    this.#users++;
    return this.#reader;
  }

  close(): void {
    if (--this.#users > 0) return;
    this.#reader?.close();
    this.#reader = null;
  }
}
