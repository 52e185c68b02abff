import { type ClockAnchor, takeAnchor } from '../../src/core/clock.ts';
import { ATTR, EVENT, SPAN } from '../../src/core/semconv.ts';
import type { Attributes, RecordingView, Span } from '../../src/core/types.ts';
import type { ScoreInput, SeenSpan } from './score.ts';
import type { TruthBlock } from './truth.ts';

/** Attribute of a clock anchor: the monotonic time at its moment. */
const ANCHOR_MONO = 'tracewright.clock.mono';

/** What the scorer needs of a recording, for one process of it. */
export function scoreInput(
  recording: RecordingView,
  pid: number,
  truth: readonly TruthBlock[],
): ScoreInput {
  return {
    truth,
    spans: recording
      .spans(SPAN.blocked)
      .filter((span) => (span.attributes[ATTR.pid] ?? pid) === pid)
      .map(seen),
    gaps: recording.gaps,
    anchor: anchorOf(recording),
    from: recording.start.startedAt,
    to: recording.endedAt,
  };
}

/** The recording's own tie between wall and monotonic time; a recording of this machine without one is read by the present tie. */
function anchorOf(recording: RecordingView): ClockAnchor {
  const anchor = recording.events(EVENT.clockAnchor)[0];
  if (anchor === undefined) return takeAnchor();
  return { wall: anchor.at, mono: number(anchor.attributes ?? {}, ANCHOR_MONO) };
}

function seen(span: Span): SeenSpan {
  const name = span.attributes[ATTR.codeFunctionName];
  return {
    from: span.from,
    to: span.to,
    durationMin: number(span.attributes, ATTR.durationMin),
    durationMax: number(span.attributes, ATTR.durationMax),
    function: typeof name === 'string' ? name : null,
    starved: span.attributes[ATTR.starved] === true,
    open: span.attributes[ATTR.open] === true,
    mechanism: String(span.attributes[ATTR.mechanism]),
    onCpu: number(span.attributes, ATTR.onCpu),
    waited: number(span.attributes, ATTR.runQueueWait),
  };
}

function number(attributes: Attributes, key: string): number {
  const value = attributes[key];
  if (typeof value !== 'number') throw new Error(`${key} is ${String(value)}, not a number`);
  return value;
}
