import { mechanismOf } from '../core/catalogue/catalogue.ts';
import { failsNotably, serverFailures } from '../core/load-rates.ts';
import type { LoadErrorClass, StageResult } from '../core/load-types.ts';
import type { Detector, Evidence } from '../core/types.ts';
import { formatSeconds } from '../core/units.ts';
import { recordedLoad } from './load-result.ts';

/**
 * TRC303 request-errors: requests of a load run failed. A note where it may have been one unlucky
 * request (core/load-rates.ts). Those that failed for want of something here are TRC301's.
 */
export const requestErrors: Detector = {
  code: 'TRC303',
  of: 'run',
  *detect(view) {
    const total = recordedLoad(view)?.total;
    if (total === undefined) return;
    const [first, ...others] = classesOf(total);
    if (first === undefined) return;
    const { ok } = total.requests;
    const failed = serverFailures(total);
    const ratio = failed / Math.max(1, ok + failed);
    yield {
      code: 'TRC303',
      kind: 'request-errors',
      mechanism: mechanismOf('request-errors', first.kind),
      severity: ok === 0 ? 'critical' : failsNotably(total) ? 'warning' : 'note',
      confidence: 'confirmed',
      pid: null,
      summary: `${failed} of ${ok + failed} requests failed, most of them by ${first.kind}`,
      facts: {
        classes: total.requests.errors,
        statuses: Object.keys(total.requests.statuses).map(Number),
      },
      where: [],
      evidence: [first, ...others],
      measure: { failed_count: failed, failed_ratio: ratio },
      remedy: REMEDIES[first.kind as LoadErrorClass] ?? null,
    };
  },
};

/** The classes by how many failed of each, with what one of them was told. */
function classesOf({ requests }: StageResult): readonly Evidence[] {
  return Object.entries(requests.errors)
    .filter(([name]) => name !== 'client')
    .sort(([, a], [, b]) => b - a)
    .map(([name, count]) => {
      const example = requests.examples[name as LoadErrorClass];
      const wait = example?.retryAfter ?? null;
      const told = example === undefined ? '' : `: ${example.detail}`;
      return {
        kind: name,
        summary: `${count} × ${name}${told}${wait === null ? '' : ` (Retry-After ${formatSeconds(wait)})`}`,
        data: { count, detail: example?.detail ?? null, retry_after_s: wait },
      };
    });
}

const REMEDIES: Readonly<Partial<Record<LoadErrorClass, string>>> = {
  refused: 'Nothing accepts connections there: start the server, or name another address.',
  dns: 'The name does not resolve from here: check it, or use the address.',
  'timeout.connect': 'The host does not answer: check address, port and firewall.',
  tls: 'The certificate or the protocol did not suit: --cacert names its authority, --insecure skips the check.',
  'http.429': 'The server limits what it takes: ask for less, or raise its limit.',
  'http.4xx':
    'The server refuses what is asked: check model, path, API key, and how long prompts and answers are (--isl, --osl).',
  'timeout.total': 'Requests take longer than the limit: --timeout raises it.',
};
