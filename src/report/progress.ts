import type { Seconds } from '../core/types.ts';
import { formatSeconds } from '../core/units.ts';
import { clipEnd, outside, toAscii } from './layout.ts';
import type { Surface } from './style.ts';
import { withoutInterpreter } from './verdict.ts';

/** What a run knows of itself while it goes on. */
export interface ProgressState {
  readonly pid: number;
  readonly title: string;
  readonly elapsed: Seconds;
  /** Null when it goes on until Ctrl-C. */
  readonly duration: Seconds | null;
  /** Whether there is a loop to watch. */
  readonly watchesLoop: boolean;
  /** Stretches of at least the threshold seen so far. */
  readonly blocked: number;
  readonly worst: Seconds;
  /** Time that could not be observed so far. */
  readonly gaps: Seconds;
}

/** The status line: one line without a line feed, never wider than the surface. */
export function renderProgress(state: ProgressState, surface: Surface): string {
  const left =
    state.duration === null
      ? `${wholeSeconds(state.elapsed)}, Ctrl-C ends`
      : `${wholeSeconds(Math.min(state.elapsed, state.duration))} of ${wholeSeconds(state.duration)}`;
  const blocked = !state.watchesLoop
    ? 'no loop watched'
    : state.blocked === 0
      ? 'loop turning'
      : `loop stood still ${state.blocked}× (worst ${formatSeconds(state.worst)})`;
  const gaps = state.gaps > 0 ? `, ${formatSeconds(state.gaps)} not covered` : '';
  const line = `${left}: pid ${state.pid}, ${blocked}${gaps} · ${outside(withoutInterpreter(state.title), 80)}`;
  // One column is left free: a line as wide as the terminal makes some of them wrap.
  return clipEnd(surface.unicode ? line : toAscii(line), surface.width - 1);
}

function wholeSeconds(seconds: Seconds): string {
  return seconds < 120 ? `${Math.floor(seconds)} s` : formatSeconds(seconds);
}
