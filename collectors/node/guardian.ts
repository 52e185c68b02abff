import { readEntry, removeEntry } from '../../src/platform/undo-journal.ts';
import { ignoreOpeningSignal } from '../../src/platform/own-signals.ts';
import { undoEntry } from './undo.ts';

/**
 * The guardian: a process of its own session that waits for the end of its standard input, whose other end trace holds and nobody else.
 * Whatever the journal says is then undone. A journal that is gone was settled by trace itself. argv: the journal's path.
 */

/** The promise is 2 s; a target that does not answer is given this long, in seconds, and then left to `trace cleanup`. */
const PATIENCE = 60;

const path = process.argv[2] ?? '';

// Whoever ends trace by a signal to everything around it does not mean its cleaner.
for (const signal of ['SIGINT', 'SIGTERM', 'SIGHUP', 'SIGQUIT'] as const)
  process.on(signal, () => {});

// It can do to a process what trace can.
ignoreOpeningSignal();

// trace reads neither once it is guarded.
for (const output of [process.stdout, process.stderr]) output.on('error', () => {});

let settling = false;
for (const event of ['end', 'close', 'error'] as const)
  process.stdin.on(event, () => void settle());
process.stdin.resume();
process.stdout.write('ready\n');

async function settle(): Promise<void> {
  if (settling) return;
  settling = true;
  const entry = readEntry(path);
  if (entry === null) return;
  const outcome = await undoEntry(entry, PATIENCE);
  if (outcome.kind !== 'failed') removeEntry(path);
}
