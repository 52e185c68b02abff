import type { ClientLimits } from '../core/load-client.ts';
import { clockOffsets, missingParts } from '../core/load-parts.ts';
import { clientDelays, errorRatio, goodputRatio, ratesOf, sentRate } from '../core/load-rates.ts';
import type { Saturation, StageSaturation } from '../core/load-saturation.ts';
import type { LoadErrorClass, LoadResult, StageResult } from '../core/load-types.ts';
import type { Seconds } from '../core/types.ts';
import { formatCount, formatRatio, formatSeconds } from '../core/units.ts';
import { outside } from './layout.ts';
import { reasonText } from './load-verdict.ts';
import type { NumberLine } from './numbers.ts';

/** What stands below the tables of a load report, a label and a line each. */

const ERRORS_SHOWN = 8;

export function requestLines({ total, stages }: LoadResult): NumberLine[] {
  const { requests } = total;
  const parts = [
    `${formatCount(requests.ok)} ok`,
    requests.failed === 0
      ? ''
      : `${formatCount(requests.failed)} failed (${formatRatio(errorRatio(total) ?? 0)})`,
    requests.unfinished === 0
      ? ''
      : `${formatCount(requests.unfinished)} still running when the drain ended`,
    requests.queued === 0 ? '' : `${formatCount(requests.queued)} had to wait for a slot`,
    requests.resent === 0 ? '' : `${formatCount(requests.resent)} sent again on a fresh connection`,
    requests.warmup === 0 ? '' : `${formatCount(requests.warmup)} more to warm up`,
  ].filter((text) => text !== '');
  const lines = [{ label: 'requests', text: parts.join(', ') }, ...errorLines(total)];
  if (stages.length < 2) lines.push(...rateLines(total));
  return lines;
}

function errorLines({ requests }: StageResult): NumberLine[] {
  const sorted = Object.entries(requests.errors).sort(([, a], [, b]) => b - a);
  const lines = sorted.slice(0, ERRORS_SHOWN).map(([name, count], i) => {
    const example = requests.examples[name as LoadErrorClass];
    const wait = example?.retryAfter ?? null;
    const detail = example === undefined ? '' : `: ${outside(example.detail, 120)}`;
    return {
      label: i === 0 ? 'errors' : '',
      text: `${formatCount(count)} × ${outside(name, 40)}${detail}${wait === null ? '' : `; Retry-After ${formatSeconds(wait)}`}`,
    };
  });
  const rest = sorted.length - lines.length;
  return rest > 0 ? [...lines, { label: '', text: `and ${rest} more classes in --json` }] : lines;
}

function rateLines(stage: StageResult): NumberLine[] {
  const rates = ratesOf(stage);
  if (rates === null) return [];
  const { tokens, window, asked } = stage;
  const counted =
    tokens.uncounted === 0
      ? ''
      : tokens.counted === 0
        ? ' (events: the server counted no tokens)'
        : ` (${formatCount(tokens.uncounted)} answers without the server's count, events instead)`;
  const sent = sentRate(stage);
  const lines = [
    {
      label: 'throughput',
      text:
        `${formatCount(rates.requests)} req/s, ${formatCount(rates.outputTokens)} output tokens/s${counted}, ` +
        `${formatCount(rates.inputTokens)} input tokens/s, over ${formatSeconds(window.seconds)}` +
        (window.whole ? ' (all of it: most requests ended after the sending)' : ''),
    },
  ];
  if (asked?.kind === 'rate' && sent !== null) {
    lines.push({
      label: 'sent',
      text: `${formatCount(sent)} req/s of ${formatCount(asked.value)} asked`,
    });
  }
  lines.push({
    label: 'in flight',
    text: `${formatCount(stage.inFlight.mean)} on average, at most ${formatCount(stage.inFlight.max)}`,
  });
  return lines;
}

export function goodputLine(result: LoadResult): NumberLine[] {
  const ratio = goodputRatio(result.total);
  if (ratio === null) return [];
  const slos = result.slos
    .map(({ metric, limit }) => `${metric} ≤ ${formatSeconds(limit)}`)
    .join(', ');
  const rate = result.stages.length > 1 ? null : ratesOf(result.total)?.goodput;
  return [
    {
      label: 'goodput',
      text: `${formatRatio(ratio)} of the requests met ${slos}${rate === null || rate === undefined ? '' : `: ${formatCount(rate)} req/s`}`,
    },
  ];
}

/** Whether the client kept up, with its numbers, and if not, why. */
export function clientLine(result: LoadResult, limits: ClientLimits): NumberLine {
  const { lateness, readLag, loopDelay } = clientDelays(result.total);
  const { coreShare } = result.total.health;
  const told = (delay: Seconds | null): string =>
    delay === null ? '?' : formatSeconds(Math.max(0, delay));
  const shares = coreShare.map(formatRatio);
  const cores =
    shares.length <= 4
      ? shares.join(', ')
      : `${formatRatio(Math.min(...coreShare))} to ${formatRatio(Math.max(...coreShare))}`;
  const numbers =
    `sent ${told(lateness.p50)} late (p99 ${told(lateness.p99)}), ` +
    `read ${told(readLag.p50)} late (p99 ${told(readLag.p99)}), loop delay p99 ${told(loopDelay.p99)}, ` +
    `${cores === '' ? '?' : cores} of a core`;
  const word = limits.limited
    ? `the limit: ${[...new Set(limits.reasons.map(reasonText))].slice(0, 3).join('; ')}`
    : 'kept up';
  return { label: 'client', text: `${word}; ${numbers}` };
}

/** What a sweep showed, and levels that were too much. */
export function saturationLines({ stages, knee, sweep }: Saturation): NumberLine[] {
  const texts = stages.filter((stage) => stage.behind !== null).map(behindText);
  if (knee !== null) {
    texts.push(
      `the knee is at ${outside(knee.label, 40)}: ${formatCount(knee.rate)} req/s${knee.of === 'goodput' ? ' that met the objectives' : ''}, and higher levels bring no more`,
    );
  }
  if (sweep === 'not-reached') texts.push('no knee: the highest level was still the best');
  if (sweep === 'all-behind') texts.push('no knee: the lowest level was too much already');
  if (sweep === 'client-limited') texts.push('no knee before the client itself was the limit');
  return texts.map((text, i) => ({ label: i === 0 ? 'saturation' : '', text }));
}

function behindText({ label, behind, trend, handled }: StageSaturation): string {
  const what =
    behind === 'latency-grows'
      ? `time to the first output grew by ${formatSeconds(trend.slope)} a second (95 %: ${formatSeconds(trend.slopeLow)} to ${formatSeconds(trend.slopeHigh)})`
      : 'requests piled up';
  const did = handled === null ? '' : `; it handled ${formatCount(handled)} req/s`;
  return `not kept up with ${outside(label, 40)}: ${what}${did}`;
}

/** Machines of a run with several, which of them are missing, and how far their clocks are apart. */
export function partLines(result: LoadResult): NumberLine[] {
  const { expected, present } = result.parts;
  if (expected < 2) return [];
  const [own] = present;
  if (own !== undefined && present.length === 1) {
    const text = `part ${own.index + 1} of ${expected}, on ${outside(own.host, 40)}; trace load merge joins them`;
    return [{ label: 'part', text }];
  }
  const missing = missingParts(result).map((index) => index + 1);
  const hosts = present.map(
    ({ index, host, complete }) =>
      `${index + 1} ${outside(host, 40)}${complete ? '' : ' (cut short)'}`,
  );
  const clocks = clockOffsets(result).map(({ part, ahead, began }) => {
    const start = `began ${formatSeconds((began.low + began.high) / 2)} after the first`;
    return ahead === null
      ? `part ${part + 1} ${start} by its own clock (the server sent no Date)`
      : `part ${part + 1} ${start} (its clock is ${formatSeconds(ahead.low)} to ${formatSeconds(ahead.high)} ahead)`;
  });
  return [
    {
      label: 'parts',
      text: `${present.length} of ${expected}: ${hosts.join(', ')}${missing.length === 0 ? '' : `; missing: ${missing.join(', ')}`}`,
    },
    ...clocks.slice(0, 4).map((text) => ({ label: '', text })),
  ];
}
