import { roleWithoutRank, targetsOf } from '../core/process-view.ts';
import { ATTR } from '../core/semconv.ts';
import type { RecordingView, Severity, UnnumberedFinding } from '../core/types.ts';

/** Findings of several processes as one list: what workers have in common is said once, with all of them named. */

type Unnumbered = UnnumberedFinding;

export const SEVERITY_RANK: Readonly<Record<Severity, number>> = {
  critical: 0,
  warning: 1,
  note: 2,
};

/** Pids named in words; the rest are in `pids`. */
const NAMED = 12;

/**
 * One finding for each cause: the same mechanism in the same line of code, or without a place the same mechanism in processes of the same
 * role. The process that suffers most speaks for all.
 */
export function groupFindings(
  findings: readonly Unnumbered[],
  view: RecordingView,
): readonly Unnumbered[] {
  const roles = new Map(targetsOf(view).map(({ pid, role }) => [pid, roleWithoutRank(role)]));
  const groups = new Map<string, [Unnumbered, ...Unnumbered[]]>();
  for (const [order, finding] of findings.entries()) {
    const key = finding.pid === null ? `alone ${order}` : keyOf(finding, roles);
    const group = groups.get(key);
    if (group === undefined) groups.set(key, [finding]);
    else group.push(finding);
  }
  // Of one kind of trouble, what only some have comes before what all have: that one is different from its fellows.
  const codes = [...new Set(findings.map(({ code }) => code))];
  const spread = ({ pids }: Unnumbered): number => pids?.length ?? 1;
  return [...groups.values()]
    .map(merge)
    .toSorted((a, b) => codes.indexOf(a.code) - codes.indexOf(b.code) || spread(a) - spread(b));
}

function keyOf(finding: Unnumbered, roles: ReadonlyMap<number, string | null>): string {
  const { code, kind, mechanism, confidence } = finding;
  const [place] = finding.where;
  const at =
    place === undefined
      ? roles.get(finding.pid ?? 0)
      : [place.function, place.file, place.line, place.module].join('\0');
  // 9 and 42 are two ways to fail, and have two causes.
  const exitCode = finding.evidence[0].data?.[ATTR.exitCode];
  return [code, kind, mechanism, confidence, at, exitCode].join('\0');
}

function merge(group: readonly [Unnumbered, ...Unnumbered[]]): Unnumbered {
  const [first, ...others] = group.toSorted(
    (a, b) => SEVERITY_RANK[a.severity] - SEVERITY_RANK[b.severity] || weightOf(b) - weightOf(a),
  );
  if (first === undefined || others.length === 0) return group[0];
  const pids = [first, ...others].flatMap(({ pid }) => pid ?? []);
  return {
    ...first,
    pids,
    summary: `${first.summary}; the same in ${others.length === 1 ? 'another process' : `${others.length} other processes`}`,
    evidence: [
      ...first.evidence,
      {
        kind: 'processes',
        summary: `the numbers are of pid ${first.pid}; also in ${naming(others)}`,
        data: { pids },
      },
    ],
    measure: { ...first.measure, processes_count: pids.length },
  };
}

/** What makes one process the worst of those with the same trouble. */
function weightOf({ measure }: Unnumbered): number {
  return measure['total_s'] ?? measure['growth_bytes_per_s'] ?? measure['growth_per_s'] ?? 0;
}

function naming(findings: readonly Unnumbered[]): string {
  const pids = findings.flatMap(({ pid }) => pid ?? []).toSorted((a, b) => a - b);
  const more = pids.length > NAMED ? ` and ${pids.length - NAMED} more` : '';
  return `${pids.length === 1 ? 'pid' : 'pids'} ${pids.slice(0, NAMED).join(', ')}${more}`;
}
