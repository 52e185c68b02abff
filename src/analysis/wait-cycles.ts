import type { LockActor, LockHolder, LockLook, LockObject } from '../core/lock-look.ts';

/** Circles of waiting: each waits, without an end to it, for what the next one has. Pure, and exact for what the look says. */

/** One step of a circle: who waits, for what, and who has it. */
export interface WaitEdge {
  readonly waiter: LockActor;
  readonly object: LockObject;
  readonly holder: LockHolder;
  readonly owner: LockActor;
}

/** The circles of one look, each once, the shortest first. */
export function waitCycles(look: LockLook): readonly (readonly WaitEdge[])[] {
  const edges = edgesOf(look);
  const found = new Map<string, readonly WaitEdge[]>();
  for (const start of edges.keys()) {
    const cycle = shortestFrom(start, edges);
    if (cycle === null) continue;
    const key = cycle
      .map(({ waiter }) => waiter.id)
      .toSorted()
      .join('\n');
    if (!found.has(key)) found.set(key, cycle);
  }
  return [...found.values()].toSorted((a, b) => a.length - b.length);
}

function edgesOf({ actors, objects }: LockLook): ReadonlyMap<string, readonly WaitEdge[]> {
  const byId = new Map(actors.map((actor) => [actor.id, actor]));
  const objectById = new Map(objects.map((object) => [object.id, object]));
  const edges = new Map<string, WaitEdge[]>();
  for (const waiter of actors) {
    const object = waiter.on === null ? undefined : objectById.get(waiter.on);
    // A wait that ends by itself breaks the circle.
    if (object === undefined || waiter.isTimed) continue;
    for (const holder of object.holders) {
      const owner = byId.get(holder.actor);
      if (owner === undefined) continue;
      edges.set(waiter.id, [...(edges.get(waiter.id) ?? []), { waiter, object, holder, owner }]);
    }
  }
  return edges;
}

/** The shortest way from an actor back to itself; null when there is none. */
function shortestFrom(
  start: string,
  edges: ReadonlyMap<string, readonly WaitEdge[]>,
): readonly WaitEdge[] | null {
  const seen = new Set<string>();
  let ways: readonly (readonly WaitEdge[])[] = [[]];
  while (ways.length > 0) {
    const longer: (readonly WaitEdge[])[] = [];
    for (const way of ways) {
      for (const edge of edges.get(way.at(-1)?.owner.id ?? start) ?? []) {
        if (edge.owner.id === start) return [...way, edge];
        if (seen.has(edge.owner.id)) continue;
        seen.add(edge.owner.id);
        longer.push([...way, edge]);
      }
    }
    ways = longer;
  }
  return null;
}
