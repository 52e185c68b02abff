import { clientLimits, type ClientLimits } from '../core/load-client.ts';
import type { Comparison, Estimate } from '../core/load-outcome.ts';
import { clockOffsets, isPartial, missingParts } from '../core/load-parts.ts';
import { saturationOf, type Saturation } from '../core/load-saturation.ts';
import type { LoadPart, LoadResult } from '../core/load-types.ts';
import { escapeUnsafe, rfc3339, toDocument } from './json.ts';
import { jsonText } from './json-text.ts';
import {
  clientDocument,
  goodputDocument,
  latencies,
  requestsDocument,
  stageDocument,
  throughputDocument,
} from './load-json-stage.ts';
import type { LoadReport } from './load-report.ts';

/**
 * The report of a load run as one JSON document (docs/schema/load.schema.json), ending with a line feed. Its stages hold everything that
 * was counted, so that documents of several machines can be merged and a later run compared with this one.
 */
export function renderLoadJson(report: LoadReport): string {
  const document = { ...toDocument(report), load: loadDocument(report) };
  return `${escapeUnsafe(jsonText(document))}\n`;
}

function loadDocument(report: LoadReport): Record<string, unknown> {
  const { load, thresholds, comparison } = report;
  const limits = clientLimits(load);
  const { total } = load;
  return {
    run_id: load.runId,
    url: load.url,
    api: load.api,
    model: load.model,
    streaming: load.streaming,
    workers: load.workers,
    seed: load.seed,
    interrupted: load.interrupted,
    parts: partsDocument(load),
    slos: load.slos.map(({ metric, limit }) => ({ metric, limit_s: limit })),
    requests: requestsDocument(total),
    latency: latencies(total, limits.total, ['ttft', 'itl', 'tpot', 'ntpot', 'e2e', 'connect']),
    latency_from_schedule: latencies(
      total,
      limits.total,
      ['ttft_scheduled', 'e2e_scheduled'],
      (key) => key.replace('_scheduled', ''),
    ),
    throughput: throughputDocument(total),
    goodput: goodputDocument(total),
    client: { ...clientDocument(total), ...limitsDocument(limits) },
    saturation: saturationDocument(saturationOf(load, limits)),
    thresholds: thresholds.map(({ expression, status, measured, limit, unit, reason }) => ({
      expression,
      status,
      measured,
      limit,
      unit,
      reason,
    })),
    baseline: comparison === null ? null : comparisonDocument(comparison),
    stages: load.stages.map((stage, i) => stageDocument(stage, limits.stages[i])),
  };
}

function partsDocument(result: LoadResult): Record<string, unknown> {
  const { expected, present } = result.parts;
  return {
    expected,
    missing: missingParts(result),
    complete: !isPartial(result),
    present: present.map(partDocument),
    clocks: clockOffsets(result).map(({ part, reference, ahead, began }) => ({
      part,
      reference,
      ahead_min_s: ahead?.low ?? null,
      ahead_max_s: ahead?.high ?? null,
      began_min_s: began.low,
      began_max_s: began.high,
    })),
  };
}

function partDocument(part: LoadPart): Record<string, unknown> {
  const { serverOffset } = part;
  return {
    index: part.index,
    host: part.host,
    cores: part.cores,
    started_at: rfc3339(part.wall),
    started_unix_s: part.wall,
    started_mono_s: part.mono,
    complete: part.complete,
    server_clock:
      serverOffset === null
        ? null
        : {
            ahead_min_s: serverOffset.low,
            ahead_max_s: serverOffset.high,
            samples: serverOffset.samples,
          },
  };
}

function limitsDocument(limits: ClientLimits): Record<string, unknown> {
  return {
    limited: limits.limited,
    reasons: limits.reasons.map(({ stage, cause, coreShare, lateness, unsent, latency }) => ({
      stage,
      cause,
      core_ratio: coreShare,
      lateness_p50_s: lateness,
      unsent: unsent?.count ?? null,
      latency: latency === null ? null : latency.key,
      p50_s: latency?.p50 ?? null,
      error_s: latency?.error ?? null,
    })),
    remedy:
      limits.remedy === null
        ? null
        : {
            kind: limits.remedy.kind,
            workers: limits.remedy.kind === 'workers' ? limits.remedy.workers : null,
          },
  };
}

function saturationDocument({ stages, knee, sweep }: Saturation): Record<string, unknown> {
  return {
    sweep,
    knee:
      knee === null
        ? null
        : { label: knee.label, asked: knee.asked, per_s: knee.rate, of: knee.of },
    stages: stages.map(({ label, sent, succeeded, behind, handled, trend }) => ({
      label,
      sent_per_s: sent,
      succeeded_per_s: succeeded,
      behind,
      handled_per_s: handled,
      ttft_trend: {
        verdict: trend.verdict,
        windows: trend.readings,
        first_s: finite(trend.first),
        last_s: finite(trend.last),
        slope: trend.slope,
        slope_low: trend.slopeLow,
        slope_high: trend.slopeHigh,
        p: trend.p,
      },
    })),
  };
}

function comparisonDocument({ source, caveats, rows }: Comparison): Record<string, unknown> {
  const estimate = ({ value, low, high, count }: Estimate): Record<string, unknown> => ({
    value,
    low: finite(low),
    high: finite(high),
    count,
  });
  return {
    source,
    caveats,
    metrics: rows.map(({ metric, stage, unit, baseline, now, change, verdict }) => ({
      metric,
      stage,
      unit,
      baseline: estimate(baseline),
      now: estimate(now),
      change_ratio: change,
      verdict,
    })),
  };
}

function finite(value: number): number | null {
  return Number.isFinite(value) ? value : null;
}
