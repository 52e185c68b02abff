import { percentText } from '../core/text.ts';
import { wilson } from '../core/statistics.ts';
import type { Detector, Evidence } from '../core/types.ts';
import { formatNumber } from '../core/units.ts';
import { recordedLoad } from './load-result.ts';

/**
 * TRC118 crosstalk: an answer held the mark that only another request was sent with (`--check-nonce`). One is enough: no server makes up somebody
 * else's mark, so nothing but a mix-up explains it. Assumed: marks are random and long enough that no two requests of the run have the same.
 */
export const crosstalk: Detector = {
  code: 'TRC118',
  of: 'run',
  *detect(view) {
    const result = recordedLoad(view);
    const mixedUp = result?.total.requests.errors.crosstalk ?? 0;
    if (result === null || mixedUp === 0) return;
    const { ok, failed, examples } = result.total.requests;
    const { low, high } = wilson(mixedUp, ok + failed);
    const levels = result.stages.map(({ label, inFlight, requests }): Evidence => {
      const own = requests.errors.crosstalk ?? 0;
      return {
        kind: 'level',
        summary: `${own} of ${requests.ok + requests.failed} at ${label}, ${formatNumber(inFlight.mean)} under way at once`,
        data: { label, in_flight: inFlight.mean, mixed_up: own },
      };
    });
    yield {
      code: 'TRC118',
      kind: 'crosstalk',
      mechanism: 'answer-of-another-request',
      severity: 'critical',
      confidence: 'confirmed',
      pid: null,
      summary: `${mixedUp} of ${ok + failed} requests got an answer that belongs to another request`,
      where: [],
      evidence: [
        { kind: 'example', summary: examples.crosstalk?.detail ?? 'an answer had a foreign mark' },
        {
          kind: 'share',
          summary: `${percentText(mixedUp / (ok + failed))} (95 %: ${percentText(low)} to ${percentText(high)})`,
          data: { low, high },
        },
        ...levels,
      ],
      measure: { crosstalk_count: mixedUp, crosstalk_ratio: mixedUp / (ok + failed) },
      remedy:
        'Users see what others asked. Look for what requests share without a key of their own: a cache, a connection that is reused with an answer still in it, a global. Show it by itself: trace repro new <recording>#H1.',
    };
  },
};
