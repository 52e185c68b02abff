import { ATTR, EVENT } from '../core/semconv.ts';
import type { RecordingView, Seconds } from '../core/types.ts';

/** What a report says of a command that trace started, beyond what it says of any process. */
export interface CommandSummary {
  /** From its start until it answered that it is ready; null where nothing was asked, or it never did. */
  readonly ready: Seconds | null;
  /** Both null as long as it ran. */
  readonly exitCode: number | null;
  readonly exitSignal: number | null;
}

/** Null for a run of something that trace did not start. */
export function summariseCommand(view: RecordingView): CommandSummary | null {
  if (view.start.command !== 'run') return null;
  const pid = view.start.targets[0]?.pid;
  const end = view
    .events(EVENT.targetExit)
    .findLast(({ attributes }) => (attributes?.[ATTR.pid] ?? pid) === pid)?.attributes;
  return {
    ready: numberOr(view.events(EVENT.ready)[0]?.attributes?.[ATTR.startupDuration]),
    exitCode: numberOr(end?.[ATTR.exitCode]),
    exitSignal: numberOr(end?.[ATTR.exitSignal]),
  };
}

function numberOr(value: unknown): number | null {
  return typeof value === 'number' ? value : null;
}
