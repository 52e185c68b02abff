import { clientLimits } from '../core/load-client.ts';
import {
  clientDelays,
  errorRatio,
  goodputRatio,
  ratesOf,
  sentRate,
  summariseLatency,
  type LatencyStatistic,
} from '../core/load-rates.ts';
import { LATENCY_KEYS, type LatencyKey, type StageResult } from '../core/load-types.ts';
import { saturationOf } from '../core/load-saturation.ts';
import { outside } from './layout.ts';
import type { LoadReport } from './load-report.ts';

/**
 * One row a level, in base units, with the names of the JSON document: for spreadsheets and data frames. RFC 4180, lines end with CRLF; a
 * number that there is none of is an empty cell. Text that a spreadsheet would run as a formula gets an apostrophe in front.
 */
export function renderLoadCsv(report: LoadReport): string {
  const { load } = report;
  const limits = clientLimits(load);
  const saturation = saturationOf(load, limits);
  const rows = load.stages.map((stage, i) => ({
    run_id: load.runId,
    url: load.url,
    model: load.model,
    label: stage.label,
    asked: stage.asked?.kind ?? '',
    asked_value: stage.asked?.value ?? null,
    ...countCells(stage),
    ...latencyCells(stage, limits.stages[i] ?? null),
    behind: saturation.stages[i]?.behind ?? '',
    client_limited: limits.reasons.some((reason) => reason.stage === stage.label),
    ...clientCells(stage),
  }));
  const [first] = rows;
  const header = Object.keys(first ?? { run_id: '', label: '' });
  const lines = [header, ...rows.map((row) => Object.values<Value>(row))];
  return lines.map((cells) => `${cells.map(csvCell).join(',')}\r\n`).join('');
}

type Value = string | number | boolean | null;

function countCells(stage: StageResult): Record<string, Value> {
  const { requests, window } = stage;
  const rates = ratesOf(stage);
  const errors = Object.entries(requests.errors).map(([name, count]) => `${name}: ${count}`);
  return {
    sent: requests.sent,
    ok: requests.ok,
    failed: requests.failed,
    unfinished: requests.unfinished,
    error_ratio: errorRatio(stage),
    errors: errors.join('; '),
    window_s: window.seconds,
    requests_per_s: rates?.requests ?? null,
    sent_per_s: sentRate(stage),
    input_tokens_per_s: rates?.inputTokens ?? null,
    output_tokens_per_s: rates?.outputTokens ?? null,
    goodput_per_s: rates?.goodput ?? null,
    goodput_ratio: goodputRatio(stage),
    in_flight_mean: stage.inFlight.mean,
    in_flight_max: stage.inFlight.max,
  };
}

const STATISTICS: readonly LatencyStatistic[] = ['mean', 'min', 'p50', 'p90', 'p95', 'p99', 'max'];

function latencyCells(
  stage: StageResult,
  support: Readonly<Record<LatencyKey, Readonly<Record<string, unknown>>>> | null,
): Record<string, Value> {
  const cells: Record<string, Value> = {};
  for (const key of LATENCY_KEYS) {
    const summary = summariseLatency(stage.latency[key]);
    cells[`${key}_count`] = summary.count;
    for (const name of STATISTICS) cells[`${key}_${name}_s`] = summary[name];
    cells[`${key}_unsupported`] = Object.keys(support?.[key] ?? {}).join(' ');
  }
  return cells;
}

function clientCells(stage: StageResult): Record<string, Value> {
  const { lateness, loopDelay, readLag } = clientDelays(stage);
  const { coreShare } = stage.health;
  return {
    lateness_p50_s: lateness.p50,
    lateness_p99_s: lateness.p99,
    loop_delay_p99_s: loopDelay.p99,
    read_lag_p99_s: readLag.p99,
    core_ratio_max: coreShare.length === 0 ? null : Math.max(...coreShare),
  };
}

/** What spreadsheets take for the beginning of a formula (OWASP, CSV injection). */
const FORMULA = /^[=+\-@\t\r]/;
const NEEDS_QUOTES = /[",\r\n]/;
const TEXT_LIMIT = 1000;

/** One cell, safe for spreadsheets: a formula becomes text, controls become escapes, quotes are doubled. */
function csvCell(value: Value): string {
  if (value === null) return '';
  if (typeof value !== 'string') return String(value);
  const text = outside(FORMULA.test(value) ? `'${value}` : value, TEXT_LIMIT);
  return NEEDS_QUOTES.test(text) ? `"${text.replaceAll('"', '""')}"` : text;
}
