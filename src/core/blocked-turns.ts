import { ATTR, EVENT, SPAN } from './semconv.ts';
import type { Attributes, Event, RecordingView, Span } from './types.ts';

/** SIGHUP, SIGINT, SIGTERM: a program that is asked to end tidies up first. */
const ASKED: ReadonlySet<unknown> = new Set([1, 2, 15]);

/**
 * Blocks of event loops. What a process was at when it ended counts where it was killed: a watchdog kills those that hang. One that left
 * by itself, or was asked to, tore itself down in its last turn, and nobody waited for that.
 */
export function blockedTurns(view: RecordingView): readonly Span[] {
  const left = new Set(
    view
      .events(EVENT.targetExit)
      .filter((event) => !wasKilled(event))
      .map(({ attributes = {} }) => pidOf(attributes, view)),
  );
  return view
    .spans(SPAN.blocked)
    .filter(
      ({ attributes }) => attributes[ATTR.open] !== true || !left.has(pidOf(attributes, view)),
    );
}

function wasKilled({ attributes = {} }: Event): boolean {
  const signal = attributes[ATTR.exitSignal];
  if (signal === undefined) return attributes[ATTR.exitCause] !== undefined;
  return !ASKED.has(signal);
}

/** What carries no pid is of the first target. */
function pidOf(attributes: Attributes, view: RecordingView): unknown {
  return attributes[ATTR.pid] ?? view.start.targets[0]?.pid;
}
