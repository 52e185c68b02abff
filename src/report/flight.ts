import type { Dimension } from '../core/comparison.ts';
import type { Bytes, Seconds } from '../core/types.ts';
import { formatBytes, formatCount, formatRatio, formatSeconds, formatTime } from '../core/units.ts';
import { quoteForShell } from '../core/text.ts';
import { outside } from './layout.ts';
import type { Page } from './page.ts';
import type { Report } from './report.ts';

/** What a flight recorder did: the events that its triggers saw, and where each is recorded. */

/** An event, from the first firing to the last one that its recording was extended for. */
export interface FlightEvent {
  /** 1, 2, … within the run. */
  readonly number: number;
  /** The trigger that fired first, as it was given. */
  readonly expression: string;
  /** When it fired. */
  readonly at: Seconds;
  /** What it saw then, in the unit of its dimension; null where there is nothing to measure. */
  readonly value: number | null;
  /** The farthest beyond the limit that it saw until the end of the recording. */
  readonly worst: number | null;
  readonly dimension: Dimension | null;
  /** Null where the observation names none. */
  readonly pid: number | null;
  /** How a process ended; from outside. */
  readonly detail: string | null;
  /** How often it fired. */
  readonly count: number;
  /** Other triggers that fired meanwhile. */
  readonly also: readonly string[];
  /** What the recording covers. */
  readonly from: Seconds;
  readonly to: Seconds;
  /** The folder; null when none could be written. */
  readonly recording: string | null;
  /** Ids of the report's findings that this recording has. */
  readonly findings: readonly string[];
  /** Of the recording; of the exported trace of this event too. */
  readonly traceId: string;
  readonly traceUrl: string | null;
}

/** What became of the triggers of a run. */
export interface Flight {
  /** As they were given. */
  readonly expressions: readonly string[];
  readonly before: Seconds;
  readonly after: Seconds;
  readonly events: readonly FlightEvent[];
  /** Firings that no recording was begun for: so many were written already, or the last ended only just before. */
  readonly notWritten: number;
  /** Of the whole run: stretches in which something could not be observed, and so could not fire. */
  readonly gaps: { readonly count: number; readonly total: Seconds };
  /** What was kept in memory at most. */
  readonly keptBytes: Bytes;
}

/** `312 ms`, `4.2 GiB`: what a trigger compared. */
export function formatTriggerValue(value: number, dimension: Dimension | null): string {
  switch (dimension) {
    case 's':
      return formatSeconds(value);
    case 'By':
      return formatBytes(value);
    case 'ratio':
      return formatRatio(value);
    case '1/s':
      return `${formatCount(value)}/s`;
    case 'count':
    case null:
      return formatCount(value);
  }
}

/** `2026-11-22 03:12:44 UTC  delay>200ms: 312 ms`: one firing, in one line. */
export function firingText(
  event: Pick<FlightEvent, 'at' | 'expression' | 'value' | 'dimension' | 'detail'>,
): string {
  const { at, expression, value, dimension, detail } = event;
  const what =
    value !== null
      ? `: ${formatTriggerValue(value, dimension)}`
      : detail === null
        ? ''
        : `: ${outside(detail, 200)}`;
  return `${formatTime(at)}  ${outside(expression, 80)}${what}`;
}

/** What the triggers came to: each event with where it is recorded and what was found in it. */
export function writeFlight(page: Page, flight: Flight, report: Report): void {
  const { style } = page;
  const { events, notWritten } = flight;
  const word = events.length === 0 ? style.green('Not triggered:') : style.red('Triggered:');
  const times = events.length === 1 ? 'one event' : `${formatCount(events.length)} events`;
  const expressions = flight.expressions.map((one) => outside(one, 80)).join(', ');
  page.paragraph(
    `${style.bold(word)} ${events.length === 0 ? 'no event' : times} of ${expressions} in ${formatSeconds(report.duration)}` +
      (notWritten === 0 ? '' : `; ${formatCount(notWritten)} more were not recorded`),
  );
  if (flight.gaps.count > 0) {
    const { count, total } = flight.gaps;
    page.paragraph(
      `What happened in ${count === 1 ? 'one stretch' : `${formatCount(count)} stretches`}, ${formatSeconds(total)} in all, was not seen and could not fire; those of the end stand below.`,
    );
  }
  for (const event of events) {
    page.gap();
    page.paragraph(`${formatCount(event.number)}  ${firingText(event)}${moreText(event)}`, {
      first: 0,
      rest: 3,
    });
    if (event.findings.length > 0)
      page.paragraph(`found ${event.findings.join(', ')}, below`, { first: 3, rest: 3 });
    if (event.recording === null) page.paragraph('not recorded', { first: 3, rest: 3 });
    else page.verbatim(`   trace show ${quoteForShell(outside(event.recording, 4096))}`);
    if (event.traceUrl !== null) page.verbatim(`   ${outside(event.traceUrl, 4096)}`);
  }
}

function moreText({ count, value, worst, dimension, also }: FlightEvent): string {
  const [firstText, worstText] = [value, worst].map((one) =>
    one === null ? '' : formatTriggerValue(one, dimension),
  );
  const parts = [
    count > 1 ? `${formatCount(count)} times` : '',
    worstText === firstText ? '' : `at worst ${worstText}`,
    also.length > 0 ? `also ${also.map((one) => outside(one, 80)).join(', ')}` : '',
  ].filter((part) => part !== '');
  return parts.length === 0 ? '' : `; ${parts.join('; ')}`;
}
