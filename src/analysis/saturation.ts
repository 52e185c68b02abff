import { clientLimits } from '../core/load-client.ts';
import { saturationOf, type Knee, type StageSaturation } from '../core/load-saturation.ts';
import type { Detector, Evidence, Finding } from '../core/types.ts';
import { formatNumber, formatProbability } from '../core/units.ts';
import { recordedLoad } from './load-result.ts';

/**
 * TRC302 saturation: the server did not keep up with the requests it was sent. In a sweep that is what was looked for, and a note; of a run at
 * one level it makes the latencies a matter of how long was waited. The rule and its numbers stand in core/load-saturation.ts.
 */
export const saturation: Detector = {
  code: 'TRC302',
  of: 'run',
  *detect(view) {
    const result = recordedLoad(view);
    if (result === null) return;
    const { stages, knee } = saturationOf(result, clientLimits(result));
    const behind = stages.filter((stage) => stage.behind !== null);
    const [first, ...others] = behind.map(evidenceOf);
    const [lowest] = behind;
    if (first === undefined || lowest === undefined) return;
    const isSweep = stages.length > 1;
    yield {
      code: 'TRC302',
      kind: 'saturation',
      mechanism: lowest.behind,
      severity: isSweep ? 'note' : 'warning',
      // Nobody looked inside: the network or a proxy may be what is full.
      confidence: 'likely',
      pid: null,
      summary: `the server did not keep up with ${lowest.label}${handledText(lowest)}${kneeText(knee)}`,
      where: [],
      evidence: [first, ...others],
      measure: measureOf(lowest),
      remedy: isSweep
        ? null
        : 'Ask for less, or read the latencies as those of a queue that grows: they depend on how long the run is.',
    };
  },
};

function handledText({ handled }: StageSaturation): string {
  return handled === null ? '' : `: it handled ${formatNumber(handled)} requests a second`;
}

function kneeText(knee: Knee | null): string {
  return knee === null
    ? ''
    : `; the knee is at ${knee.label}, with ${formatNumber(knee.rate)} a second`;
}

function evidenceOf({ label, behind, trend, sent, handled }: StageSaturation): Evidence {
  const { slope, slopeLow, slopeHigh, readings, p } = trend;
  const summary =
    behind === 'latency-grows'
      ? `at ${label}, the time from schedule to first output grew by ${formatNumber(slope)} s a second (95 %: ${formatNumber(slopeLow)} to ${formatNumber(slopeHigh)}; ${readings} windows${p === null ? '' : `, p ${formatProbability(p)}`})`
      : `at ${label}, fewer requests ended than came in during the second half`;
  return {
    kind: behind ?? 'saturation',
    summary,
    data: { stage: label, sent_per_s: sent, handled_per_s: handled, ...trend },
  };
}

function measureOf({ sent, handled, trend }: StageSaturation): Finding['measure'] {
  return {
    ...(sent === null ? {} : { sent_per_s: sent }),
    ...(handled === null ? {} : { handled_per_s: handled }),
    ttft_growth_ratio: trend.slope,
  };
}
