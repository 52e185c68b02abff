import type { Seconds } from '../../src/core/types.ts';
import type { PoolCall, TaskObject, TaskWait, TaskWaitKind } from '../../src/core/tasks.ts';
import type { PythonAttributes } from './attributes.ts';
import type { CoroutineFrame, AwaitChain, Coroutines } from './coroutines.ts';
import { Witness } from './witness.ts';
import { isAddress, Unsound } from './objects.ts';
import type { TaskObjects } from './task-objects.ts';
import { MemoryError } from '../../src/platform/memory.ts';

/** What suspended tasks wait for and hold, from their frames: asyncio's own functions and the objects they are methods of. */

const ASYNCIO = /\/asyncio\/(\w+)\.py$/;
/** Functions of asyncio by file; a method is told apart by the type of its object where the value is a table. */
const RULES: Readonly<
  Record<string, Readonly<Record<string, TaskWaitKind | Readonly<Record<string, TaskWaitKind>>>>>
> = {
  tasks: { sleep: 'sleep', _wait: 'wait', wait_for: 'task', _cancel_and_wait: 'task' },
  locks: {
    acquire: { Lock: 'lock', Semaphore: 'semaphore', BoundedSemaphore: 'semaphore' },
    wait: { Event: 'event', Condition: 'condition', Barrier: 'barrier' },
    _wait: { Barrier: 'barrier' },
    _block: { Barrier: 'barrier' },
  },
  queues: { get: 'queue-get', put: 'queue-put', join: 'queue-get' },
  streams: {
    _wait_for_data: 'stream-read',
    _drain_helper: 'stream-write',
    drain: 'stream-write',
    wait_closed: 'stream-write',
  },
  taskgroups: { __aexit__: 'task-group', _aexit: 'task-group' },
  subprocess: { wait: 'subprocess', communicate: 'subprocess' },
  base_subprocess: { _wait: 'subprocess', _connect_pipes: 'subprocess' },
  threads: { to_thread: 'executor' },
  selector_events: {
    sock_recv: 'socket',
    sock_recv_into: 'socket',
    sock_recvfrom: 'socket',
    sock_sendall: 'socket',
    sock_sendto: 'socket',
    sock_connect: 'socket',
    sock_accept: 'socket',
    _sock_connect: 'socket',
  },
  base_events: {
    getaddrinfo: 'executor',
    getnameinfo: 'executor',
    create_connection: 'socket',
    shutdown_default_executor: 'executor',
  },
};
/** Subclasses of these count as them; a subclass of any other name is told by this, most particular first. */
const KIND_BY_NAME: readonly (readonly [RegExp, TaskWaitKind])[] = [
  [/Semaphore|Limiter/, 'semaphore'],
  [/Lock/, 'lock'],
  [/Condition/, 'condition'],
  [/Event/, 'event'],
];
/** Classes that hand out connections; those that hand out threads or work have waits of other kinds. */
const POOL_CLASS = /(?:Pool|Connector)$/;
/** A qualified name of a function in a class. */
const METHOD = /[^.>]\.[^.]+$/;
const OTHER_POOL = /Worker|Thread|Process|Task|Executor/;
/** A future that a thread of a pool will fill has this callback (asyncio.futures._chain_future). */
const CHAINED_FUTURE = '_call_check_cancel';
/** Contexts within contexts that are followed: an `asynccontextmanager` over one over a lock. */
const CONTEXT_DEPTH = 4;

interface WaitSources {
  readonly attributes: PythonAttributes;
  readonly coroutines: Coroutines;
  readonly objects: TaskObjects;
  /** Names of the functions that a future calls when it is done. */
  readonly callbackNames: (future: number) => readonly string[];
}

/** Reads what a chain of frames says beyond its lines. Methods throw Unsound or MemoryError. */
export class TaskWaits {
  readonly #sources: WaitSources;

  constructor(sources: WaitSources) {
    this.#sources = sources;
  }

  /** For what a task waits whose future is not done. */
  wait(chain: AwaitChain, future: number): Omit<TaskWait, 'tasks'> {
    const frames = chain.frames.toReversed();
    for (const frame of frames) {
      const kind = this.#kindOf(frame);
      if (kind !== null) return this.#described(kind, frame, future);
      if (!ASYNCIO.test(frame.file)) break;
    }
    return { kind: this.#kindOfFuture(future), object: this.#object(future), delay: null };
  }

  /** What the frames have entered by `async with` and not left; `waited` is what the task waits to enter, and does not hold. */
  holds(chain: AwaitChain, depth = 0): readonly TaskObject[] {
    const held: TaskObject[] = [];
    const entering = new Set<number>();
    for (const frame of chain.frames) {
      // While a lock is being taken, its __aexit__ is on the stack already.
      if (/(?:^|\.)__aenter__$/.test(frame.function)) entering.add(this.#self(frame));
    }
    for (const frame of chain.frames) {
      for (const [i, slot] of frame.slots.entries()) {
        const context = this.#exitOf(slot, frame.slots[i + 1] ?? 0);
        if (context === 0 || entering.has(context)) continue;
        const object = this.#object(context);
        if (object === null) continue;
        held.push(object);
        if (depth < CONTEXT_DEPTH) held.push(...this.#within(context, object.type, depth + 1));
      }
    }
    return held;
  }

  /** The pools of connections whose methods the chain is in, innermost first. */
  pools(chain: AwaitChain): readonly PoolCall[] {
    return chain.frames.toReversed().flatMap((each, frame): readonly PoolCall[] => {
      if (ASYNCIO.test(each.file) || !this.#mayBeMethod(each)) return [];
      const pool = this.#object(this.#self(each));
      if (pool === null || !POOL_CLASS.test(pool.type) || OTHER_POOL.test(pool.type)) return [];
      return [{ pool, frame }];
    });
  }

  /** Up to 3.10 a function's name does not tell. */
  #mayBeMethod({ function: name }: CoroutineFrame): boolean {
    return this.#sources.attributes.values.objects.table.minor < 11 || METHOD.test(name);
  }

  #within(context: number, type: string, depth: number): readonly TaskObject[] {
    if (!type.endsWith('_AsyncGeneratorContextManager')) return [];
    const generator = this.#sources.attributes.get(context, 'gen');
    if (generator === null) return [];
    const { coroutines, attributes } = this.#sources;
    return this.holds(
      coroutines.chain(generator, new Witness(attributes.values.objects.memory)),
      depth,
    );
  }

  /** The object whose bound `__aexit__` this is, else 0. From 3.14 on the function lies there, and behind it the object. */
  #exitOf(slot: number, next: number): number {
    if (!isAddress(slot)) return 0;
    const { values } = this.#sources.attributes;
    const { memory, table } = values.objects;
    if (table.minor >= 14 && next !== 0 && this.functionName(slot) === '__aexit__') return next;
    if (values.typeOf(slot).name !== 'method') return 0;
    const method = memory.pointer(slot + table.callable.methodFunction);
    return this.functionName(method) === '__aexit__'
      ? memory.pointer(slot + table.callable.methodSelf)
      : 0;
  }

  /** The plain name of a Python function's code; empty for other callables. */
  functionName(address: number): string {
    const { values } = this.#sources.attributes;
    const { memory, table } = values.objects;
    if (!isAddress(address) || values.typeOf(address).name !== 'function') return '';
    const code = memory.pointer(address + table.callable.functionCode);
    values.objects.check(code, values.objects.symbols.codeType);
    return values.objects.text(memory.pointer(code + table.code.name));
  }

  #kindOf(frame: CoroutineFrame): TaskWaitKind | null {
    const module = ASYNCIO.exec(frame.file)?.[1] ?? '';
    const rules = RULES[module];
    const rule = rules?.[frame.function.slice(frame.function.lastIndexOf('.') + 1)];
    if (rule === undefined || typeof rule === 'string') return rule ?? null;
    const type = this.#object(this.#self(frame))?.type ?? '';
    return rule[type] ?? KIND_BY_NAME.find(([pattern]) => pattern.test(type))?.[1] ?? null;
  }

  #described(kind: TaskWaitKind, frame: CoroutineFrame, future: number): Omit<TaskWait, 'tasks'> {
    if (kind === 'sleep') return { kind, object: null, delay: this.#number(frame.slots[0] ?? 0) };
    const hasSelf = !['tasks', 'threads'].includes(ASYNCIO.exec(frame.file)?.[1] ?? '');
    const object = this.#object(hasSelf ? this.#self(frame) : future);
    return { kind, object, delay: null };
  }

  #kindOfFuture(future: number): TaskWaitKind {
    const { objects, callbackNames } = this.#sources;
    if (objects.kind(future) === 'task') return 'task';
    const type = this.#object(future)?.type;
    if (type === undefined) return 'other';
    if (type === '_GatheringFuture') return 'gather';
    return callbackNames(future).includes(CHAINED_FUTURE) ? 'executor' : 'future';
  }

  /** The first argument of a method; the cell it lies in where an inner function uses it. */
  #self(frame: CoroutineFrame): number {
    const first = frame.slots[0] ?? 0;
    if (!isAddress(first)) return 0;
    const { values } = this.#sources.attributes;
    if (values.typeOf(first).name !== 'cell') return first;
    return values.objects.memory.pointer(first + values.objects.table.callable.cell);
  }

  #object(address: number): TaskObject | null {
    if (!isAddress(address)) return null;
    const { name } = this.#sources.attributes.values.typeOf(address);
    return { id: addressText(address), type: name.slice(name.lastIndexOf('.') + 1) };
  }

  #number(address: number): Seconds | null {
    const { values } = this.#sources.attributes;
    try {
      const type = values.typeAddress(address);
      return type === values.objects.symbols.floatType
        ? values.float(address)
        : values.int(address);
    } catch (error) {
      if (error instanceof Unsound || error instanceof MemoryError) return null; // a Decimal
      throw error;
    }
  }
}

/** An address as tasks, locks and loops are named by. */
export function addressText(address: number): string {
  return `0x${address.toString(16)}`;
}
