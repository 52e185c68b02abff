import type { LockActor, LockLook, LockObject } from '../../src/core/lock-look.ts';
import { SNAPSHOT } from '../../src/core/semconv.ts';
import type { Snapshot } from '../../src/core/types.ts';
import { T0 } from './simulated-run.ts';

/** What tests of deadlocks simulate looks at locks from. */

/** A thread that waits for `on`, and has done so since the beginning. */
export function thread(
  name: string,
  on: string | null,
  overrides: Partial<LockActor> = {},
): LockActor {
  const frames = [{ function: `${name}_work`, file: '/srv/app.py', line: 7 }];
  const rest = { isTimed: false, since: T0, runsLoop: false, frames, caller: 0 };
  return {
    id: `thread ${name}`,
    kind: 'thread',
    name,
    tid: 1,
    wait: 'lock',
    on,
    ...rest,
    ...overrides,
  };
}

/** A lock, and which thread has it by a `with` statement. */
export function lock(
  id: string,
  holder: string | null,
  overrides: Partial<LockObject> = {},
): LockObject {
  const holders = holder === null ? [] : [{ actor: `thread ${holder}`, how: 'with', frame: null }];
  return {
    id,
    kind: 'lock',
    label: id,
    taken: true,
    value: null,
    items: null,
    holders,
    ...overrides,
  };
}

export function look(actors: readonly LockActor[], objects: readonly LockObject[]): LockLook {
  return { pid: 42, threads: actors.length, others: [], tasks: [], actors, objects };
}

/** Looks as they are recorded, each so many seconds after the beginning. */
export function lockSnapshots(
  ...looks: readonly (readonly [after: number, look: LockLook])[]
): readonly Snapshot[] {
  return looks.map(([after, body]) => ({
    kind: 'snapshot',
    at: T0 + after,
    of: SNAPSHOT.locks,
    body,
  }));
}
