import { type Stretch, union } from '../core/stretches.ts';
import type { Gap, RecordingView, Seconds } from '../core/types.ts';

/** Stretches in which trace itself did not run (no core for it, a machine that stood still): what happened then, nobody saw. */

/** The collector that reads once a second whatever else there is, in the thread that reads pages too. */
const BEAT = 'process';

/** How much of a stretch trace did not run. */
export function unwatchedIn(view: RecordingView): (stretch: Stretch) => Seconds {
  // Every process that is watched has its own gap of the same moment.
  const stretches = union(view.gaps.filter(isOurs));
  return ({ from, to }) =>
    stretches.reduce(
      (sum, one) => sum + Math.max(0, Math.min(one.to, to) - Math.max(one.from, from)),
      0,
    );
}

function isOurs({ collector, reason }: Gap): boolean {
  return reason === 'suspended' || (collector === BEAT && reason === 'late');
}
