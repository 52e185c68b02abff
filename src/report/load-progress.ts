import type { Seconds } from '../core/types.ts';
import { formatCount, formatSeconds } from '../core/units.ts';
import { outside, toAscii } from './layout.ts';
import type { Surface } from './style.ts';

/** What a load run knows of itself while it goes on. */
export interface LoadProgress {
  readonly elapsed: Seconds;
  /** Null when the run ends by a number of requests. */
  readonly duration: Seconds | null;
  readonly stage: { readonly label: string; readonly number: number; readonly of: number };
  /** Warming up, sending, or waiting for the last answers. */
  readonly phase: 'warm-up' | 'sending' | 'draining';
  readonly inFlight: number;
  /** Requests that ended, of how many; null when that is not known. */
  readonly done: number;
  readonly asked: number | null;
  readonly failed: number;
  /** Answered, over the last seconds; null before there are any. */
  readonly requestRate: number | null;
  readonly tokenRate: number | null;
  /** Of everything measured so far; null before there is any. */
  readonly ttft: { readonly p50: Seconds; readonly p99: Seconds } | null;
}

/** The status line: one line without a line feed, never wider than the surface: what does not fit is left out, the least important first. */
export function renderLoadProgress(progress: LoadProgress, surface: Surface): string {
  const { elapsed, duration, stage, phase, inFlight, done, asked, failed, ttft } = progress;
  const time =
    duration === null
      ? wholeSeconds(elapsed)
      : `${wholeSeconds(Math.min(elapsed, duration))} of ${wholeSeconds(duration)}`;
  const label = outside(stage.label, 30);
  const level = stage.of === 1 ? label : `${label} (${stage.number}/${stage.of})`;
  const { requestRate, tokenRate } = progress;
  // By importance; the line has them in the order of their places.
  const pieces: readonly { readonly place: number; readonly text: string | null }[] = [
    { place: 0, text: phase === 'sending' ? time : `${time}, ${phase}` },
    { place: 8, text: failed === 0 ? null : `${formatCount(failed)} failed` },
    { place: 2, text: `${formatCount(inFlight)} in flight` },
    { place: 5, text: tokenRate === null ? null : `${formatCount(tokenRate)} tok/s` },
    {
      place: 7,
      text:
        ttft === null
          ? null
          : `TTFT p50 ${formatSeconds(ttft.p50)}, p99 ${formatSeconds(ttft.p99)}`,
    },
    { place: 1, text: level },
    { place: 4, text: requestRate === null ? null : `${formatCount(requestRate)} req/s` },
    {
      place: 3,
      text: `${formatCount(done)}${asked === null ? '' : ` of ${formatCount(asked)}`} done`,
    },
  ];
  // One column is left free: a line as wide as the terminal makes some of them wrap.
  let room = surface.width - 1;
  const chosen: { readonly place: number; readonly text: string }[] = [];
  const separator = surface.unicode ? ' · ' : ' | ';
  for (const { place, text } of pieces) {
    if (text === null) continue;
    const shown = surface.unicode ? text : toAscii(text);
    const cost = shown.length + (chosen.length === 0 ? 0 : separator.length);
    if (cost > room) continue;
    room -= cost;
    chosen.push({ place, text: shown });
  }
  return chosen
    .toSorted((a, b) => a.place - b.place)
    .map(({ text }) => text)
    .join(separator);
}

function wholeSeconds(seconds: Seconds): string {
  return seconds < 120 ? `${Math.floor(seconds)} s` : formatSeconds(seconds);
}
