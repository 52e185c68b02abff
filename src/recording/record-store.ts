import { ATTR } from '../core/semconv.ts';
import type { Event, Frame, Gap, Seconds, Snapshot, Span, StackSample } from '../core/types.ts';
import { eventGroup, joinEvents, joinSpans, lengthOf, spanGroup } from './composite.ts';

/** What a recording holds beside readings, with the worst kept when it becomes too much. */

/** How much is kept. */
export interface RecordLimits {
  /** Spans, stacks, snapshots, events and gaps. */
  readonly records: number;
  /** Blocks, and seconds of busy threads: more than this, and those of one place and stretch become one. */
  readonly alike: number;
}

/** Stretches in which what is alike becomes one: from here, doubled until it fits, to here (longer than any run). */
const STRETCH: { readonly first: Seconds; readonly longest: Seconds } = {
  first: 1,
  longest: 2 ** 22,
};
/** Room that is made at once, so that it is not looked for again soon. */
const ROOM = 0.6;
const SEVERITIES: Readonly<Record<Event['severity'], number>> = { info: 0, warn: 1, error: 2 };

export class RecordStore {
  readonly #limits: RecordLimits;
  readonly #spans = new Map<string, Span[]>();
  readonly #events = new Map<string, Event[]>();
  readonly #snapshots = new Map<string, Snapshot[]>();
  readonly #stacks = new Map<string, StackSample>();
  /** `code.stacktrace` by the id of its stack: a text of some kB that all its spans share. */
  readonly #traces = new Map<string, string>();
  #gaps: Gap[] = [];
  #count = 0;
  #alike = 0;
  #stretch: Seconds = STRETCH.first;
  /** So many alike are looked through again; more than the limit where none of them had another like it. */
  #joinAt: number;
  #dropped = 0;

  constructor(limits: RecordLimits) {
    this.#limits = limits;
    this.#joinAt = limits.alike;
  }

  /** Records that were not kept. */
  get dropped(): number {
    return this.#dropped;
  }

  add(record: Span | Event | Snapshot | StackSample | Gap): void {
    if (record.kind === 'stack' && this.#stacks.has(record.id)) return;
    if (this.#alike >= this.#joinAt) this.#join();
    if (this.#count >= this.#limits.records) this.#keepWorst();
    if (this.#count >= this.#limits.records) {
      this.#dropped++;
      return;
    }
    this.#count++;
    switch (record.kind) {
      case 'span':
        if (spanGroup(record) !== null) this.#alike++;
        return append(this.#spans, record.name, this.#withSharedTrace(record));
      case 'event':
        if (eventGroup(record) !== null) this.#alike++;
        return append(this.#events, record.name, record);
      case 'snapshot':
        return append(this.#snapshots, record.of, record);
      case 'stack':
        this.#stacks.set(record.id, record);
        return;
      case 'gap':
        this.#gaps.push(record);
    }
  }

  spans(name: string): readonly Span[] {
    return (this.#spans.get(name) ?? []).toSorted((a, b) => a.from - b.from);
  }

  events(name: string): readonly Event[] {
    return (this.#events.get(name) ?? []).toSorted((a, b) => a.at - b.at);
  }

  snapshots(of: string): readonly Snapshot[] {
    return (this.#snapshots.get(of) ?? []).toSorted((a, b) => a.at - b.at);
  }

  stack(id: string): readonly Frame[] | undefined {
    return this.#stacks.get(id)?.frames;
  }

  gaps(): readonly Gap[] {
    return this.#gaps.toSorted((a, b) => a.from - b.from);
  }

  names(): Readonly<Record<'spans' | 'events', readonly string[]>> {
    return { spans: [...this.#spans.keys()], events: [...this.#events.keys()] };
  }

  /** Everything, stacks before what refers to them. */
  *all(): Iterable<StackSample | Event | Gap | Snapshot | Span> {
    yield* this.#stacks.values();
    for (const list of this.#events.values()) yield* list;
    yield* this.#gaps;
    for (const list of this.#snapshots.values()) yield* list;
    for (const list of this.#spans.values()) yield* list;
  }

  #withSharedTrace(span: Span): Span {
    const { [ATTR.stackId]: id, [ATTR.codeStacktrace]: trace } = span.attributes;
    if (typeof id !== 'string' || typeof trace !== 'string') return span;
    const known = this.#traces.get(id);
    if (known === undefined) this.#traces.set(id, trace);
    if (known !== trace || known === undefined) return span;
    return { ...span, attributes: { ...span.attributes, [ATTR.codeStacktrace]: known } };
  }

  /** Makes one of what is alike, in ever longer stretches until there is room. */
  #join(): void {
    this.#joinWithin(this.#stretch);
    while (this.#alike > this.#limits.alike * ROOM && this.#stretch < STRETCH.longest) {
      this.#stretch *= 2;
      this.#joinWithin(this.#stretch);
    }
    this.#joinAt = Math.max(this.#limits.alike, this.#alike / ROOM);
  }

  #joinWithin(stretch: Seconds): void {
    const before = this.#alike;
    this.#alike = 0;
    for (const [name, spans] of this.#spans) {
      const group = (span: Span) => inStretch(spanGroup(span), span.from, stretch);
      this.#spans.set(name, this.#joined(spans, group, joinSpans));
    }
    for (const [name, events] of this.#events) {
      const group = (event: Event) => inStretch(eventGroup(event), event.at, stretch);
      this.#events.set(name, this.#joined(events, group, joinEvents));
    }
    this.#count -= before - this.#alike;
  }

  #joined<T>(
    items: readonly T[],
    groupOf: (item: T) => string | null,
    join: (a: T, b: T) => T,
  ): T[] {
    const single: T[] = [];
    const groups = new Map<string, T>();
    for (const item of items) {
      const group = groupOf(item);
      if (group === null) {
        single.push(item);
        continue;
      }
      const known = groups.get(group);
      groups.set(group, known === undefined ? item : join(known, item));
    }
    this.#alike += groups.size;
    return [...single, ...groups.values()];
  }

  /** Of the kind that has most, lets go of the less grave part: shorter spans and gaps, lower severities, what is older. */
  #keepWorst(): void {
    const lists: readonly (readonly [number, () => number])[] = [
      [sizeOf(this.#spans), () => keep(this.#spans, (a, b) => lengthOf(b) - lengthOf(a))],
      [sizeOf(this.#events), () => keep(this.#events, byGravity)],
      [sizeOf(this.#snapshots), () => keep(this.#snapshots, (a, b) => b.at - a.at)],
      [this.#gaps.length, () => this.#keepLongGaps()],
    ];
    const [most] = lists.toSorted(([a], [b]) => b - a);
    const lost = most?.[1]() ?? 0;
    this.#dropped += lost;
    this.#count -= lost;
    this.#alike =
      countOf(this.#spans, (span) => spanGroup(span) !== null) +
      countOf(this.#events, (event) => eventGroup(event) !== null);
  }

  #keepLongGaps(): number {
    const before = this.#gaps.length;
    const byLength = this.#gaps.toSorted((a, b) => b.to - b.from - (a.to - a.from));
    this.#gaps = byLength.slice(0, Math.floor(before * ROOM));
    return before - this.#gaps.length;
  }
}

function inStretch(group: string | null, at: Seconds, stretch: Seconds): string | null {
  return group === null ? null : `${Math.floor(at / stretch)}\n${group}`;
}

function byGravity(a: Event, b: Event): number {
  return SEVERITIES[b.severity] - SEVERITIES[a.severity] || b.at - a.at;
}

/** Keeps the first part by `order` of each list; gives how many were not kept. */
function keep<T>(lists: Map<string, T[]>, order: (a: T, b: T) => number): number {
  let lost = 0;
  for (const [name, items] of lists) {
    const kept = items.toSorted(order).slice(0, Math.ceil(items.length * ROOM));
    lost += items.length - kept.length;
    lists.set(name, kept);
  }
  return lost;
}

function sizeOf<T>(lists: ReadonlyMap<string, readonly T[]>): number {
  return countOf(lists, () => true);
}

function countOf<T>(
  lists: ReadonlyMap<string, readonly T[]>,
  isMeant: (item: T) => boolean,
): number {
  let count = 0;
  for (const items of lists.values()) for (const item of items) if (isMeant(item)) count++;
  return count;
}

function append<T>(into: Map<string, T[]>, key: string, item: T): void {
  const list = into.get(key);
  if (list === undefined) into.set(key, [item]);
  else list.push(item);
}
