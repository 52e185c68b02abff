import { ATTR, EVENT } from '../core/semconv.ts';
import { median } from '../core/statistics.ts';
import type { Detector, Event, RecordingView, Seconds, UnnumberedFinding } from '../core/types.ts';
import { formatSeconds } from '../core/units.ts';
import { numberAttribute } from './attributes.ts';

/**
 * A service that ended and came back, in a run that followed it. One restart is a note, because how the earlier process ended is a finding of
 * its own (TRC103); one that keeps ending soon after its start is a crash loop, whatever code it leaves with.
 */

const CODE = 'TRC104';

/** A process that does not live this long after a restart has not come up: Kubernetes resets its back-off after ten minutes only. */
const SHORT_LIFE: Seconds = 60;
/** So many short lives in a row are no coincidence: systemd gives up at five starts within ten seconds. */
const LOOP_LIVES = 3;
/** Restarts listed one by one in the evidence. */
const LISTED = 5;

export const restarts: Detector = {
  code: CODE,
  of: 'run',
  *detect(view) {
    const all = view.events(EVENT.targetRestart).map((event) => readRestart(event, view));
    if (all.length === 0) return;
    // The first life began before the run, however long it was.
    const short = all.slice(1).filter(({ lived }) => lived < SHORT_LIFE);
    yield restartFinding(all, short.length >= LOOP_LIVES - 1 ? short : null);
  },
};

interface Restart {
  readonly at: Seconds;
  readonly pid: number | null;
  readonly previous: number | null;
  readonly lived: Seconds;
  readonly away: Seconds;
  /** How the process before ended, in words. */
  readonly how: string;
}

function readRestart({ at, attributes }: Event, view: RecordingView): Restart {
  const previous = numberAttribute(attributes, ATTR.restartPrevious);
  const first = view.start.targets[0]?.pid ?? null;
  // Its process collector may notice the end after the service is back.
  const exit = view
    .events(EVENT.targetExit)
    .findLast(({ attributes: of }) => (numberAttribute(of, ATTR.pid) ?? first) === previous);
  return {
    at,
    pid: numberAttribute(attributes, ATTR.pid),
    previous,
    lived: numberAttribute(attributes, ATTR.restartLived) ?? 0,
    away: numberAttribute(attributes, ATTR.restartAway) ?? 0,
    how: exit?.body ?? `pid ${previous ?? '?'} ended`,
  };
}

function sentenceOf({ how, pid, away, lived }: Restart): string {
  return `${how}, ${formatSeconds(lived)} after its start; pid ${pid ?? '?'} took its place ${formatSeconds(away)} later`;
}

/** One finding for the run; `loop` are the short lives of a crash loop, null where it is none. */
function restartFinding(
  all: readonly Restart[],
  loop: readonly Restart[] | null,
): UnnumberedFinding {
  const last = all.at(-1);
  const away = all.reduce((sum, one) => sum + one.away, 0);
  const listed = all.slice(-LISTED);
  const more = all.length - listed.length;
  const times = all.length === 1 ? 'once' : `${all.length} times`;
  const lives = median((loop ?? all).map(({ lived }) => lived));
  return {
    code: CODE,
    kind: 'process-exit',
    mechanism: loop === null ? 'restart' : 'crash loop',
    severity: loop === null ? 'note' : 'critical',
    confidence: 'confirmed',
    pid: last?.pid ?? null,
    summary:
      `the service ended and came back ${times}, away for ${formatSeconds(away)}` +
      (loop === null ? '' : `; it lived ${formatSeconds(lives)} each time (median): a crash loop`),
    where: [],
    evidence: [
      {
        kind: 'restarts',
        summary: more > 0 ? `the last ${LISTED} of ${all.length} restarts` : `restarted ${times}`,
      },
      ...listed.map((one) => ({ kind: 'restart', summary: sentenceOf(one) })),
    ],
    measure: { restarts_count: all.length, lived_median_s: lives, away_s: away },
    remedy:
      loop === null
        ? null
        : 'Look into its own log for the last lines before each end; what it needs at its start may be missing.',
  };
}
