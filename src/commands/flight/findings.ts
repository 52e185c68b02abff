import type { Finding, Severity } from '../../core/types.ts';

const RANK: Readonly<Record<Severity, number>> = { critical: 0, warning: 1, note: 2 };
/** Findings kept of one run; a program has a handful of places that block. */
const MOST = 200;

/** The findings of many recordings of one run: the same place blocks in most of them, and is said once, as it was when it was worst. */
export class DistinctFindings {
  readonly #byPlace = new Map<string, { finding: Finding; readonly events: Set<number> }>();

  /** Takes the findings of the recording of an event. */
  add(event: number, findings: readonly Finding[]): void {
    for (const finding of findings) {
      const key = placeOf(finding);
      const known = this.#byPlace.get(key);
      if (known === undefined) {
        if (this.#byPlace.size < MOST)
          this.#byPlace.set(key, { finding, events: new Set([event]) });
        continue;
      }
      known.events.add(event);
      if (isGraver(finding, known.finding)) known.finding = finding;
    }
  }

  /** Gravest first, numbered F1, F2, …. */
  all(): readonly Finding[] {
    return this.#ranked().map(({ finding }, index) => ({ ...finding, id: `F${index + 1}` }));
  }

  /** The numbers of those that the recording of this event has. */
  idsOf(event: number): readonly string[] {
    return this.#ranked().flatMap(({ events }, index) =>
      events.has(event) ? [`F${index + 1}`] : [],
    );
  }

  #ranked(): readonly { readonly finding: Finding; readonly events: ReadonlySet<number> }[] {
    return [...this.#byPlace.values()].sort(
      (a, b) => RANK[a.finding.severity] - RANK[b.finding.severity],
    );
  }
}

function placeOf({ code, kind, pid, mechanism, where }: Finding): string {
  const [place] = where;
  return JSON.stringify([code, kind, pid, mechanism, place?.file ?? '', place?.function ?? '']);
}

function isGraver(one: Finding, other: Finding): boolean {
  const byRank = RANK[one.severity] - RANK[other.severity];
  if (byRank !== 0) return byRank < 0;
  return (one.measure['worst_max_s'] ?? 0) > (other.measure['worst_max_s'] ?? 0);
}
