import { mechanismOf } from '../core/catalogue/catalogue.ts';
import { clientLimits, type ClientReason, type ClientRemedy } from '../core/load-client.ts';
import type { Detector, Evidence, Finding } from '../core/types.ts';
import { formatSeconds } from '../core/units.ts';
import { recordedLoad } from './load-result.ts';

/**
 * TRC301 client-saturated: the load generator was the limit, so the numbers are about it and not about the server. The rule and its numbers
 * stand in core/load-client.ts.
 */
export const clientSaturated: Detector = {
  code: 'TRC301',
  of: 'run',
  *detect(view) {
    const result = recordedLoad(view);
    if (result === null) return;
    const { reasons, remedy } = clientLimits(result);
    const [first, ...others] = reasons.map(evidenceOf);
    if (first === undefined) return;
    const busiest = Math.max(...reasons.map((reason) => reason.coreShare));
    yield {
      code: 'TRC301',
      kind: 'client-saturated',
      mechanism: mechanismOf(
        'client-saturated',
        [...new Set(reasons.map((reason) => reason.cause))].join(', '),
      ),
      severity: 'warning',
      confidence: 'confirmed',
      pid: null,
      summary: `the load generator was itself the limit: ${first.summary}`,
      where: [],
      evidence: [first, ...others],
      measure: measureOf(reasons, busiest),
      remedy: remedy === null ? null : remedyText(remedy),
    };
  },
};

const PERCENT = 100;

function evidenceOf(reason: ClientReason): Evidence {
  const { stage, cause, coreShare, lateness, unsent, latency } = reason;
  const what = {
    descriptors: `${unsent?.count ?? 0} requests had no descriptor: ${unsent?.detail ?? ''}`,
    core: `a worker used ${Math.round(coreShare * PERCENT)} % of a core`,
    schedule: `half of the requests were sent ${formatSeconds(lateness ?? 0)} late or more`,
    reading:
      latency === null
        ? 'it read late'
        : `up to ${formatSeconds(latency.error)} of the ${latency.key} p50 of ${formatSeconds(latency.p50)} may be its own`,
  }[cause];
  return {
    kind: cause,
    summary: `at ${stage}, ${what}`,
    data: {
      stage,
      core_ratio: coreShare,
      lateness_p50_s: lateness,
      unsent_count: unsent?.count ?? null,
      latency: latency?.key ?? null,
      p50_s: latency?.p50 ?? null,
      error_s: latency?.error ?? null,
    },
  };
}

function measureOf(reasons: readonly ClientReason[], busiest: number): Finding['measure'] {
  const error = Math.max(0, ...reasons.map(({ latency }) => latency?.error ?? 0));
  const lateness = Math.max(0, ...reasons.map((reason) => reason.lateness ?? 0));
  const unsent = reasons.reduce((sum, reason) => sum + (reason.unsent?.count ?? 0), 0);
  return {
    core_ratio: busiest,
    ...(error > 0 ? { error_s: error } : {}),
    ...(lateness > 0 ? { lateness_p50_s: lateness } : {}),
    ...(unsent > 0 ? { unsent_count: unsent } : {}),
  };
}

function remedyText(remedy: ClientRemedy): string {
  switch (remedy.kind) {
    case 'descriptors':
      return 'Raise the limit of open files (ulimit -n), or ask for fewer connections at once.';
    case 'workers':
      return `Spread the load over more threads: --workers ${remedy.workers}.`;
    case 'machines':
      return 'Run parts of the load on more machines and join their results with trace load merge.';
    case 'machine':
      return 'The client had little CPU to itself: run it on a machine that does nothing else.';
  }
}
