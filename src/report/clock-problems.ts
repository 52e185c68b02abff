import { EVENT } from '../core/semconv.ts';
import type { RecordingView } from '../core/types.ts';

/** More are counted: a clock that is set every minute has one problem. */
const SHOWN = 3;

/** What the wall clock did during the run that a reader of its times of day has to know. */
export function clockProblems(view: RecordingView): readonly string[] {
  const steps = view.events(EVENT.clockStep).map(({ body }) => body);
  const more = steps.length - SHOWN;
  return [...steps.slice(0, SHOWN), ...(more > 0 ? [`and ${more} more steps of the clock`] : [])];
}
