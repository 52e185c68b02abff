import type { Bytes } from './types.ts';
import { isRecord } from './record.ts';

/**
 * What is alive in a heap that V8 wrote down: objects by constructor, promises that something waits for, listeners. Pure; the snapshot is a
 * target's and may be anything.
 */

/** What there is of one constructor. */
export interface ConstructorCount {
  readonly count: number;
  /** Of the objects themselves, without what they refer to. */
  readonly bytes: Bytes;
}

/** The functions that one emitter calls for one event. */
export interface ListenerCount {
  /** Constructor of the emitter. Untrusted, as the event is. */
  readonly emitter: string;
  readonly event: string;
  readonly count: number;
}

export interface LiveObjects {
  readonly constructors: ReadonlyMap<string, ConstructorCount>;
  /** Pending promises with an `await` or `then` on them. */
  readonly waitedFor: number;
  /** Those with more than {@link MANY_LISTENERS}, the most first. */
  readonly listeners: readonly ListenerCount[];
}

/** From one snapshot to the next. */
export interface ConstructorGrowth extends ConstructorCount {
  readonly name: string;
  readonly addedCount: number;
  readonly addedBytes: Bytes;
}

/** Node warns of a leak above as many listeners of one event (`EventEmitter.defaultMaxListeners`). */
const MANY_LISTENERS = 10;
/** Objects gained between two moments below which a program only went on: each has had its garbage collected. */
const LEAST_GAINED = 100;
const LISTENERS_KEPT = 1000;
const EVENTS = '_events';
const REACTIONS = 'reactions_or_result';
const REACTION = 'system / PromiseReaction';

/** Reads a snapshot; null where it is not one. */
export function readLiveObjects(snapshot: unknown): LiveObjects | null {
  const heap = WrittenHeap.of(snapshot);
  if (heap === null) return null;
  const constructors = new Map<string, { count: number; bytes: Bytes }>();
  const listeners: ListenerCount[] = [];
  let waitedFor = 0;
  for (let node = 0; node < heap.nodeCount; node++) {
    if (heap.typeOf(node) !== 'object') continue;
    const name = heap.nameOf(node);
    if (!name.startsWith('system / ')) {
      const known = constructors.get(name) ?? { count: 0, bytes: 0 };
      constructors.set(name, known);
      known.count++;
      known.bytes += heap.sizeOf(node);
    }
    for (const [edge, to] of heap.named(node)) {
      if (edge === REACTIONS && name === 'Promise' && heap.nameOf(to) === REACTION) waitedFor++;
      if (edge === EVENTS) listeners.push(...listenersIn(heap, name, to));
    }
  }
  const kept = listeners.toSorted((a, b) => b.count - a.count).slice(0, LISTENERS_KEPT);
  return { constructors, waitedFor, listeners: kept };
}

/** Which constructors have many objects more, the most first. */
export function constructorGrowth(
  before: LiveObjects,
  after: LiveObjects,
): readonly ConstructorGrowth[] {
  return [...after.constructors]
    .map(([name, { count, bytes }]) => {
      const old = before.constructors.get(name) ?? { count: 0, bytes: 0 };
      return { name, count, bytes, addedCount: count - old.count, addedBytes: bytes - old.bytes };
    })
    .filter(({ addedCount }) => addedCount >= LEAST_GAINED)
    .toSorted((a, b) => b.addedBytes - a.addedBytes);
}

function* listenersIn(
  heap: WrittenHeap,
  emitter: string,
  events: number,
): Generator<ListenerCount> {
  for (const [event, to] of heap.named(events)) {
    if (event === '__proto__' || heap.typeOf(to) !== 'object' || heap.nameOf(to) !== 'Array')
      continue;
    const count = heap.elements(to);
    if (count > MANY_LISTENERS) yield { emitter, event, count };
  }
}

/** The arrays of a snapshot by the names that it gives their columns. */
class WrittenHeap {
  readonly nodeCount: number;
  readonly #nodes: readonly number[];
  readonly #edges: readonly number[];
  readonly #strings: readonly unknown[];
  readonly #columns: Columns;
  /** Of each node, where its edges begin. */
  readonly #first: Uint32Array;

  private constructor(
    {
      nodes,
      edges,
      strings,
    }: Record<'nodes' | 'edges', readonly number[]> & {
      readonly strings: readonly unknown[];
    },
    columns: Columns,
  ) {
    this.#nodes = nodes;
    this.#edges = edges;
    this.#strings = strings;
    this.#columns = columns;
    this.nodeCount = Math.floor(nodes.length / columns.nodeSize);
    this.#first = new Uint32Array(this.nodeCount + 1);
    for (let i = 0; i < this.nodeCount; i++)
      this.#first[i + 1] = (this.#first[i] ?? 0) + this.#node(i, columns.edgeCount);
  }

  static of(snapshot: unknown): WrittenHeap | null {
    if (!isRecord(snapshot)) return null;
    const { nodes, edges, strings } = snapshot;
    const columns = columnsOf(snapshot['snapshot']);
    if (columns === null || !isNumbers(nodes) || !isNumbers(edges) || !Array.isArray(strings))
      return null;
    return new WrittenHeap({ nodes, edges, strings }, columns);
  }

  typeOf(node: number): string {
    return this.#columns.nodeTypes[this.#node(node, this.#columns.type)] ?? '';
  }

  nameOf(node: number): string {
    return this.#string(this.#node(node, this.#columns.name));
  }

  sizeOf(node: number): Bytes {
    return this.#node(node, this.#columns.size);
  }

  /** Where a node's edges with a name lead: properties, variables, fields of V8's own. */
  *named(node: number): Generator<readonly [name: string, to: number]> {
    for (const at of this.#edgesOf(node)) {
      const type = this.#edgeType(at);
      if (type === 'property' || type === 'internal' || type === 'context')
        yield [this.#string(this.#edges[at + 1] ?? -1), this.#to(at)];
    }
  }

  /** How many numbered elements a node has. */
  elements(node: number): number {
    let count = 0;
    for (const at of this.#edgesOf(node)) if (this.#edgeType(at) === 'element') count++;
    return count;
  }

  *#edgesOf(node: number): Generator<number> {
    const end = this.#first[node + 1] ?? 0;
    for (let i = this.#first[node] ?? 0; i < end; i++) yield i * this.#columns.edgeSize;
  }

  #edgeType(at: number): string {
    return this.#columns.edgeTypes[this.#edges[at] ?? -1] ?? '';
  }

  #to(at: number): number {
    return Math.floor((this.#edges[at + 2] ?? 0) / this.#columns.nodeSize);
  }

  #node(node: number, column: number): number {
    return this.#nodes[node * this.#columns.nodeSize + column] ?? 0;
  }

  #string(index: number): string {
    const text = this.#strings[index];
    return typeof text === 'string' ? text : '';
  }
}

interface Columns {
  readonly nodeSize: number;
  readonly edgeSize: number;
  readonly type: number;
  readonly name: number;
  readonly size: number;
  readonly edgeCount: number;
  readonly nodeTypes: readonly string[];
  readonly edgeTypes: readonly string[];
}

/** The order of V8's edges since 2014: type, name or index, target. Those of nodes are looked up. */
const EDGE_FIELDS = 'type,name_or_index,to_node';

function columnsOf(head: unknown): Columns | null {
  const meta = isRecord(head) ? head['meta'] : null;
  if (!isRecord(meta)) return null;
  const fields = textsOf(meta['node_fields']);
  const edges = textsOf(meta['edge_fields']);
  const nodeTypes = textsOf(firstOf(meta['node_types']));
  const edgeTypes = textsOf(firstOf(meta['edge_types']));
  const [type, name, size, edgeCount] = ['type', 'name', 'self_size', 'edge_count'].map((field) =>
    fields.indexOf(field),
  );
  if (type === undefined || name === undefined || size === undefined || edgeCount === undefined)
    return null;
  if (Math.min(type, name, size, edgeCount) < 0 || edges.join(',') !== EDGE_FIELDS) return null;
  const sizes = { nodeSize: fields.length, edgeSize: edges.length };
  return { ...sizes, type, name, size, edgeCount, nodeTypes, edgeTypes };
}

function firstOf(value: unknown): unknown {
  return Array.isArray(value) ? value[0] : null;
}

function textsOf(value: unknown): readonly string[] {
  return Array.isArray(value)
    ? value.map((one: unknown) => (typeof one === 'string' ? one : ''))
    : [];
}

function isNumbers(value: unknown): value is readonly number[] {
  return Array.isArray(value) && (value.length === 0 || typeof value[0] === 'number');
}
