import { setTimeout as sleep } from 'node:timers/promises';
import type { HeapContainer, HeapLook } from '../../src/core/heap-look.ts';
import { MemoryError } from '../../src/platform/memory.ts';
import { readStatus } from '../../src/platform/proc.ts';
import type { Clock, Ratio, Seconds } from '../../src/core/types.ts';
import { type Census, emptyCensus, typesOf } from './heap-census.ts';
import { AddressIndex } from './heap-index.ts';
import { contentOf, largeContentOf } from './heap-content.ts';
import { HeapGraph, type RunningFrame } from './heap-graph.ts';
import { HeapMemory } from './heap-memory.ts';
import { HeapObjects } from './heap-objects.ts';
import { HeapOrigins } from './heap-origins.ts';
import { HeapPaths } from './heap-path.ts';
import { type HeapType, HeapTypes, isPointer } from './heap-types.ts';
import { collectorState, findGenerations, GcWalk } from './heap-walk.ts';
import type { Code } from './code-objects.ts';
import { Unsound } from './objects.ts';
import type { PythonReader } from './reader.ts';

/** Looks at all objects of a CPython process from outside: it is not stopped, and nothing runs in it. */

/**
 * Walks until one holds together; the last without the links back, in which the collector counts while it collects. Where a thousand requests a
 * second change the lists, none does, and the CPU is better spent on what is reachable.
 */
const TRIES = 8;
const TWO_WAY_TRIES = 7;
/** Walks that got to the end and yet missed something, of which the best is taken: more cost a look several times over, and hardly ever find more. */
const WHOLE_TRIES = 3;
/** Of CPU, whatever comes of it: then the next walk is the last one. Beside it, three walks of what was met (1.3 µs an object, 371,000 objects of 3.11). */
const LEAST_CPU: Seconds = 1;
const CPU_PER_OBJECT: Seconds = 4e-6;
/** So long the end of a collection is waited for: it takes up to a second of CPU, and longer where many share a core. */
const WAIT_LIMIT: Seconds = 5;
/** Between two looks whether it has ended: to ask at each turn of our loop took more CPU than the walk itself. */
const WAIT_STEP: Seconds = 0.005;
/** Containers with as many entries are remembered from one look to the next. */
const LEAST_ENTRIES = 64;
/** So many of them, the largest, are given with what they hold. */
const CONTAINER_LIMIT = 500;
/** Containers of large entries that are followed for further, those with most entries: 16,000 objects each. */
const LARGE_LIMIT = 12;
/** Searched for `sys.modules`. */
const INTERPRETER_SEARCHED = 32 * 1024;
/** Interpreters of a process whose objects are counted. */
const INTERPRETER_LIMIT = 16;
const FRAME_LIMIT = 1024;
const THREAD_LIMIT = 64;
/** What comes and goes between walk and search is a few in a hundred of what is met; what a walk lost, most of it. */
const LEAST_COVERAGE: Ratio = 0.9;

/** A walk that got to the end. */
interface Walked {
  readonly census: Census;
  readonly walk: GcWalk;
  readonly origins: HeapOrigins;
  /** Whether no collection of everything moved objects meanwhile. */
  readonly isUndisturbed: boolean;
  readonly isIncremental: boolean;
}

export class PythonHeap {
  readonly #reader: PythonReader;
  readonly #clock: Pick<Clock, 'now'>;
  readonly #memory: HeapMemory;
  readonly #objects: HeapObjects;
  #broken = 0;
  /** Whether the present step is over because the target has something to end first. */
  #isWaiting = false;
  /** The most objects that a walk met, and how many the last search. */
  #walked = 0;
  #reached = 0;

  constructor(reader: PythonReader, clock: Pick<Clock, 'now'>) {
    this.#reader = reader;
    this.#clock = clock;
    this.#memory = new HeapMemory(reader.objects.memory);
    const types = new HeapTypes(this.#memory, reader.minor);
    this.#objects = new HeapObjects(this.#memory, types, reader.minor);
  }

  /** One look, with room for others between its steps; null when it was broken off or could not be had. `isFast` as for {@link look}. */
  async take(
    options: { readonly isFast?: boolean; readonly signal?: AbortSignal } = {},
  ): Promise<HeapLook | null> {
    const steps = this.look(options);
    while (options.signal?.aborted !== true) {
      const step = steps.next();
      if (step.done === true) return step.value;
      await (this.#isWaiting
        ? sleep(WAIT_STEP * 1e3)
        : new Promise((resolve) => setImmediate(resolve)));
    }
    return null;
  }

  /**
   * One look, in steps of some milliseconds; null when nothing could be read. `isFast`: the lists are known to change faster than they can be
   * read, and are not tried again.
   */
  *look({ isFast = false }: { readonly isFast?: boolean } = {}): Generator<
    void,
    HeapLook | null,
    void
  > {
    const from = this.#clock.now();
    this.#broken = 0;
    this.#isWaiting = false;
    try {
      return yield* this.#lookFrom(from, isFast);
    } finally {
      // Until the next look, a minute or more, a quarter of a GiB is of no use.
      this.#memory.release();
    }
  }

  *#lookFrom(from: Seconds, isFast: boolean): Generator<void, HeapLook | null, void> {
    let best: Walked | null = null;
    let missed = 0;
    const began = ownCpu();
    for (let attempt = 0; !isFast && attempt < TRIES && missed < WHOLE_TRIES; attempt++) {
      if (ownCpu() - began > LEAST_CPU + CPU_PER_OBJECT * this.#walked) {
        if (best !== null) break;
        attempt = Math.max(attempt, TWO_WAY_TRIES);
      }
      const walked = yield* this.#walk(attempt >= TWO_WAY_TRIES);
      if (walked?.isUndisturbed === true) {
        const graph = yield* this.#search();
        // Places that were read anew may have led past others: what the search meets has to have been seen.
        if (walked.walk.repaired === 0 || this.#coverage(graph, walked) >= LEAST_COVERAGE)
          return yield* this.#complete(walked, { from, graph });
        missed++;
      }
      this.#broken++;
      if (walked !== null && walked.census.objects > (best?.census.objects ?? 0)) best = walked;
      yield;
    }
    if (best === null) return yield* this.#reachable(from);
    const graph = yield* this.#search();
    // What a step of an incremental collection had taken out may lie all in one place, which the search hardly sees.
    // What was given up early is not judged anew by a search that may have met less.
    const isWhole =
      missed < WHOLE_TRIES && !best.isIncremental && this.#coverage(graph, best) >= LEAST_COVERAGE;
    return yield* this.#complete({ ...best, isUndisturbed: isWhole }, { from, graph });
  }

  /** What can be reached from modules and running functions, where no walk held together: not every object, but who holds what. */
  *#reachable(from: Seconds): Generator<void, HeapLook | null, void> {
    this.#memory.forget();
    this.#objects.types.begin();
    const graph = yield* this.#search();
    if (graph.index.size === 0) return null;
    const census: Census = emptyCensus();
    const paths = new HeapPaths(graph, this.#objects);
    const held = this.#containers(census, { graph, paths, seen: new AddressIndex() });
    return {
      at: from,
      duration: this.#clock.now() - from,
      objects: graph.index.size,
      bytes: 0,
      resident: residentOf(this.#reader.pid),
      types: [],
      ...held,
      broken: this.#broken,
      repaired: 0,
      onlyReachable: true,
      lacking:
        'the lists of its objects changed faster than they could be read: only what is reachable from its modules and running functions was looked at, and objects were not counted',
    };
  }

  *#search(): Generator<void, HeapGraph, void> {
    const graph = new HeapGraph(this.#objects, this.#reached);
    const modules = this.#modules();
    if (modules !== 0) yield* graph.run(modules, this.#frames());
    this.#reached = graph.index.size;
    return graph;
  }

  /** Of the objects that the search met and that are always in the lists, the share that the walk saw. */
  #coverage(graph: HeapGraph, { walk }: Walked): Ratio {
    let met = 0;
    let seen = 0;
    for (let node = 0; node < graph.index.size; node++) {
      const address = graph.index.addresses[node] ?? 0;
      const form = this.#objects.typeOf(address)?.form;
      if (form !== 'list' && form !== 'set' && form !== 'deque' && form !== 'other') continue;
      met++;
      if (walk.index.has(address)) seen++;
    }
    return met === 0 ? 1 : seen / met;
  }

  /** One walk; null when it broke. */
  *#walk(isOneWay: boolean): Generator<void, Walked | null, void> {
    const memory = this.#memory;
    memory.forget();
    this.#objects.types.begin();
    const census: Census = emptyCensus();
    const lists = this.#interpreters().flatMap((start) => {
      const heads = findGenerations(memory, start);
      return heads === null ? [] : [heads];
    });
    const [first] = lists[0] ?? [];
    if (first === undefined) return null;
    yield* this.#awaitCollection(first);
    const before = collectorState(memory, first);
    memory.forget();
    const origins = new HeapOrigins(this.#objects, (code) => this.#reader.codeAt(code));
    const walk = new GcWalk({ memory, types: this.#objects.types }, lists, {
      isOneWay,
      expected: this.#walked,
    });
    const isWhole = yield* walk.run((address, type) => {
      this.#count(census, address, type);
      origins.meet(address, type);
    });
    this.#walked = Math.max(this.#walked, walk.index.size);
    if (!isWhole) return null;
    yield* this.#awaitCollection(first);
    const after = collectorState(memory, first);
    const isUndisturbed =
      !isOneWay && !after.isCollecting && after.disturbing === before.disturbing;
    return { census, walk, origins, isUndisturbed, isIncremental: after.isIncremental };
  }

  /** Until no collection is under way, or it takes too long; `first`: the youngest generation's head. */
  *#awaitCollection(first: number): Generator<void, void, void> {
    const until = this.#clock.now() + WAIT_LIMIT;
    this.#isWaiting = true;
    while (collectorState(this.#memory, first).isCollecting && this.#clock.now() < until) yield;
    this.#isWaiting = false;
  }

  /**
   * Where the lists may lie, the main interpreter's first: in interpreters since 3.9, in the
   * runtime before.
   */
  #interpreters(): readonly number[] {
    const { symbols, table } = this.#reader.objects;
    if (this.#reader.minor === 8) return [symbols.runtime];
    const main = this.#memory.word(symbols.runtime + table.runtime.interpretersMain);
    const found = isPointer(main) ? [main] : [];
    let at = this.#memory.word(symbols.runtime + table.runtime.interpretersHead);
    for (let count = 0; isPointer(at) && count < INTERPRETER_LIMIT; count++) {
      if (at !== main) found.push(at);
      at = this.#memory.word(at + table.interpreter.next);
    }
    return found;
  }

  #count(census: Census, address: number, type: HeapType): void {
    const bytes = this.#objects.sizeOf(address, type);
    census.objects++;
    census.bytes += bytes;
    const count = census.counts.get(type);
    if (count === undefined) census.counts.set(type, { count: 1, bytes });
    else {
      count.count++;
      count.bytes += bytes;
    }
    const entries = this.#objects.entriesOf(address, type);
    if (entries !== null && entries >= LEAST_ENTRIES)
      census.containers.push({ address, type, entries });
  }

  *#complete(
    { census, walk, origins, isUndisturbed }: Walked,
    { from, graph }: { from: Seconds; graph: HeapGraph },
  ): Generator<void, HeapLook, void> {
    const paths = new HeapPaths(graph, this.#objects);
    const held = this.#containers(census, { graph, paths, seen: walk.index });
    yield;
    const lacking = [
      ...(walk.isCut ? ['it has more objects than are read'] : []),
      ...(graph.index.size === 0 ? ['its modules were not found, so nothing is named'] : []),
      ...(isUndisturbed
        ? []
        : ['its objects changed too fast during each walk: some may be missing']),
    ];
    return {
      at: from,
      duration: this.#clock.now() - from,
      objects: census.objects,
      bytes: census.bytes,
      resident: residentOf(this.#reader.pid),
      types: typesOf(census, paths, origins),
      ...held,
      broken: this.#broken,
      repaired: walk.repaired,
      lacking: lacking.length === 0 ? null : lacking.join('; '),
    };
  }

  #containers(
    census: Census,
    { graph, paths, seen }: { graph: HeapGraph; paths: HeapPaths; seen: AddressIndex },
  ): Pick<HeapLook, 'containers' | 'leastEntries'> {
    // Dicts of nothing but text and numbers are not in the collector's lists: they are found by who refers to them.
    const all = [...census.containers];
    for (let node = 0; node < graph.index.size; node++) {
      const address = graph.index.addresses[node] ?? 0;
      if (seen.has(address)) continue;
      const type = this.#objects.typeOf(address);
      const entries = type === null ? null : this.#objects.entriesOf(address, type);
      if (type !== null && entries !== null && entries >= LEAST_ENTRIES)
        all.push({ address, type, entries });
    }
    const largest = all.sort((a, b) => b.entries - a.entries).slice(0, CONTAINER_LIMIT);
    const leastEntries =
      all.length > CONTAINER_LIMIT ? (largest.at(-1)?.entries ?? LEAST_ENTRIES) : LEAST_ENTRIES;
    let large = 0;
    const found = largest.map(({ address, type, entries }): HeapContainer => {
      const usual = contentOf(this.#objects, { address, type });
      const isFollowed = usual.isCut && large++ < LARGE_LIMIT;
      const content = isFollowed ? largeContentOf(this.#objects, address, type) : usual;
      const node = graph.index.find(address);
      return {
        id: `${address.toString(16)}:${type.name}`,
        type: paths.nameOf(type),
        entries,
        bytes: this.#objects.sizeOf(address, type) + Math.round(entries * content.bytesPerEntry),
        content: content.type === null ? null : paths.nameOf(content.type),
        at: node < 0 ? null : paths.of(node),
      };
    });
    const values = graph.large.map(({ parent, label, value, bytes, type }): HeapContainer => {
      const at = paths.to(parent, { node: -1, label, value });
      return { id: `${at?.path}:${type}`, type, entries: bytes, bytes, content: null, at };
    });
    return { leastEntries, containers: [...found, ...values].sort((a, b) => b.bytes - a.bytes) };
  }

  /** `sys.modules`: the dict in the main interpreter that has `sys` and `builtins`. */
  #modules(): number {
    const { symbols, table } = this.#reader.objects;
    const start = this.#memory.word(symbols.runtime + table.runtime.interpretersMain);
    if (!isPointer(start)) return 0;
    for (let at = start; at < start + INTERPRETER_SEARCHED; at += 8) {
      const dict = this.#memory.word(at);
      const type = this.#objects.typeOf(dict);
      if (type?.name !== 'dict') continue;
      const wanted = new Set(['sys', 'builtins', '__main__']);
      this.#objects.dictItems(dict, 100_000, (value, key) => {
        if (this.#objects.typeOf(value)?.form === 'module')
          wanted.delete(this.#objects.text(key, 20));
      });
      if (wanted.size === 0) return dict;
    }
    return 0;
  }

  /** What runs at the moment: the variables of running functions hold objects as well. */
  #frames(): readonly RunningFrame[] {
    const { table } = this.#reader.objects;
    const frames: RunningFrame[] = [];
    for (const { tid } of this.#reader.threads(THREAD_LIMIT)) {
      const list = this.#reader.framesOf(tid);
      for (let i = list?.first ?? 0; list !== null && i < list.depth; i++) {
        const code = list.code[i] ?? 0;
        const known = this.#codeAt(code);
        if (known === null || frames.length >= FRAME_LIMIT) continue;
        frames.push({
          function: known.name,
          file: known.file,
          line: known.firstLine,
          code,
          locals: (list.address[i] ?? 0) + table.frame.locals,
        });
      }
    }
    return frames;
  }

  /** The code a frame runs; null when the frame was left meanwhile. */
  #codeAt(address: number): Code | null {
    try {
      return this.#reader.codeAt(address);
    } catch (error) {
      if (error instanceof Unsound || error instanceof MemoryError) return null;
      throw error;
    }
  }
}

/** CPU seconds of this process. */
function ownCpu(): Seconds {
  const { user, system } = process.cpuUsage();
  return (user + system) / 1e6;
}

/** Resident set in bytes. */
function residentOf(pid: number): number | null {
  return readStatus(pid)?.residentBytes ?? null;
}
