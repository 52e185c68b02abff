import type { MechanismOf } from '../core/types.ts';

const OTHER_REMEDY =
  'Move the computation off the loop (a thread or process pool), or split it and yield in between.';

/** What to do, by what the loop was found waiting for. */
const REMEDIES: Readonly<Record<MechanismOf<'loop-blocked'>, string>> = {
  sleep: 'Replace the blocking sleep by the asynchronous one of the framework.',
  'file-io': 'Move the file access to a thread (asyncio.to_thread, fs.promises).',
  'network-io': 'Use an asynchronous client, or run the synchronous one in a thread.',
  subprocess: 'Start the child process asynchronously and await its end.',
  pipe: 'Read the pipe asynchronously, or in a thread.',
  'quadratic work':
    'It goes through all that was gathered since the start: keep an index or a running total, or bound what is kept.',
  dns: 'Resolve names with loop.getaddrinfo, or keep the answers: the system resolver waits for the name server.',
  lock: 'See which thread holds the lock; do not wait for it on the loop.',
  gil: 'Have that thread do its work in a process of its own, or in small parts: no other thread runs Python meanwhile.',
  import: 'Import it before the loop runs: at the top of the file, or once at start-up.',
  gc: 'Collect less: fewer objects that live long; in Python gc.freeze() after start-up and a higher gc.set_threshold, in Node a larger young generation (--max-semi-space-size).',
  cpu: OTHER_REMEDY,
  'nested-poll': OTHER_REMEDY,
  'page-fault': OTHER_REMEDY,
  starved: OTHER_REMEDY,
  unknown: OTHER_REMEDY,
};

export function remedyFor(mechanism: MechanismOf<'loop-blocked'> | null): string {
  return mechanism === null ? OTHER_REMEDY : REMEDIES[mechanism];
}
