import type { Frame, Seconds } from '../../src/core/types.ts';
import type { PoolCall, TaskObject, TaskWait, TaskWaitKind } from '../../src/core/tasks.ts';
import type { PythonAttributes } from './attributes.ts';
import type { CoroutineFrame, AwaitChain, Coroutines } from './coroutines.ts';
import { Witness } from './witness.ts';
import { isAddress, Unsound } from './objects.ts';
import type { TaskObjects } from './task-objects.ts';
import { MemoryError } from '../../src/platform/memory.ts';

/** What suspended tasks wait for and hold, from their frames: asyncio's own functions and the objects they are methods of. */

const ASYNCIO = /\/asyncio\/(\w+)\.py$/;
type WaitRule = TaskWaitKind | Readonly<Record<string, TaskWaitKind>>;
/** Functions of asyncio by file; a method is told apart by the type of its object where the value is a table. */
const RULES: Readonly<Record<string, Readonly<Record<string, WaitRule>>>> = {
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
const ENTERING = /(?:^|\.)__aenter__$/;
const OTHER_POOL = /Worker|Thread|Process|Task|Executor/;
/** Modules of asyncio whose waiting functions are no methods. */
const FUNCTIONS_ONLY: ReadonlySet<string> = new Set(['tasks', 'threads']);
/** A future that a thread of a pool will fill has this callback (asyncio.futures._chain_future). */
const CHAINED_FUTURE = '_call_check_cancel';
/** Contexts within contexts that are followed: an `asynccontextmanager` over one over a lock. */
const CONTEXT_DEPTH = 4;

/** What a frame says by its names alone. */
interface FrameFacts {
  /** Of asyncio; null for any other file. */
  readonly module: string | null;
  readonly rule: WaitRule | null;
  readonly isEntering: boolean;
  readonly isMethod: boolean;
}

/** Ten thousand tasks have a few frames between them, each of them one object. */
const factsOf = new WeakMap<Frame, FrameFacts>();

function frameFacts(frame: Frame): FrameFacts {
  const known = factsOf.get(frame);
  if (known !== undefined) return known;
  const { function: name, file } = frame;
  const module = ASYNCIO.exec(file)?.[1] ?? null;
  const rules = module === null || !Object.hasOwn(RULES, module) ? undefined : RULES[module];
  const plain = name.slice(name.lastIndexOf('.') + 1);
  const facts = {
    module,
    rule: rules !== undefined && Object.hasOwn(rules, plain) ? (rules[plain] ?? null) : null,
    isEntering: ENTERING.test(name),
    isMethod: METHOD.test(name),
  };
  factsOf.set(frame, facts);
  return facts;
}

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

  /** For what a task waits whose future is not done; which `tasks` that are is not told here. */
  wait(chain: AwaitChain, future: number): TaskWait {
    const frames = chain.frames.toReversed();
    for (const frame of frames) {
      const kind = this.#kindOf(frame);
      if (kind !== null) return this.#described(kind, frame, future);
      if (frameFacts(frame.frame).module === null) break;
    }
    return {
      kind: this.#kindOfFuture(future),
      object: this.#object(future),
      delay: null,
      tasks: [],
    };
  }

  /** What the frames have entered by `async with` and not left; `waited` is what the task waits to enter, and does not hold. */
  holds(chain: AwaitChain, depth = 0): readonly TaskObject[] {
    const held: TaskObject[] = [];
    const entering = new Set<number>();
    for (const frame of chain.frames) {
      // While a lock is being taken, its __aexit__ is on the stack already.
      if (frameFacts(frame.frame).isEntering) entering.add(this.#self(frame));
    }
    for (const frame of chain.frames) {
      const [first, end] = frame.stack();
      for (let i = first; i < end; i++) {
        const context = this.#exitOf(frame.slot(i), frame.slot(i + 1));
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
    const { values } = this.#sources.attributes;
    const hasQualifiedNames = values.objects.table.minor >= 11;
    const calls: PoolCall[] = [];
    for (const [depth, each] of chain.frames.entries()) {
      const { module, isMethod } = frameFacts(each.frame);
      // Up to 3.10 a function's name does not tell whether it is a method.
      if (module !== null || (hasQualifiedNames && !isMethod)) continue;
      const self = this.#self(each);
      if (!isAddress(self) || !isPool(plainName(values.typeOf(self).name))) continue;
      const pool = this.#object(self);
      if (pool !== null) calls.push({ pool, frame: chain.frames.length - 1 - depth });
    }
    return calls.toReversed();
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
    const { rule } = frameFacts(frame.frame);
    if (rule === null || typeof rule === 'string') return rule;
    const type = this.#object(this.#self(frame))?.type ?? '';
    return rule[type] ?? KIND_BY_NAME.find(([pattern]) => pattern.test(type))?.[1] ?? null;
  }

  #described(kind: TaskWaitKind, frame: CoroutineFrame, future: number): TaskWait {
    if (kind === 'sleep')
      return { kind, object: null, delay: this.#number(frame.slot(0)), tasks: [] };
    const hasSelf = !FUNCTIONS_ONLY.has(frameFacts(frame.frame).module ?? '');
    const object = this.#object(hasSelf ? this.#self(frame) : future);
    return { kind, object, delay: null, tasks: [] };
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
    const first = frame.slot(0);
    if (!isAddress(first)) return 0;
    const { values } = this.#sources.attributes;
    if (values.typeOf(first).name !== 'cell') return first;
    return values.objects.memory.pointer(first + values.objects.table.callable.cell);
  }

  #object(address: number): TaskObject | null {
    if (!isAddress(address)) return null;
    const { name } = this.#sources.attributes.values.typeOf(address);
    return { id: addressText(address), type: plainName(name) };
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

/** The last part of a dotted name. */
function plainName(name: string): string {
  return name.slice(name.lastIndexOf('.') + 1);
}

function isPool(type: string): boolean {
  return POOL_CLASS.test(type) && !OTHER_POOL.test(type);
}

/** Three digits of an address each: to write one digit after the other is a division each, and ten thousand tasks have a hundred thousand addresses. */
const HEXADECIMAL: readonly string[] = Array.from({ length: 4096 }, (_, i) =>
  i.toString(16).padStart(3, '0'),
);

/** An address as tasks, locks and loops are named by. */
export function addressText(address: number): string {
  const high = Math.floor(address / 2 ** 24);
  if (high >= 2 ** 24) return `0x${address.toString(16)}`;
  const low = address - high * 2 ** 24;
  const digits = `${HEXADECIMAL[high >> 12]}${HEXADECIMAL[high & 4095]}${HEXADECIMAL[low >> 12]}${HEXADECIMAL[low & 4095]}`;
  let from = 0;
  while (from < 11 && digits.charCodeAt(from) === 48) from++;
  return `0x${digits.slice(from)}`;
}
