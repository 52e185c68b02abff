import type { Seconds } from '../../../src/core/types.ts';
import type { TruthBlock } from '../../truth/truth.ts';

/*
 * What other tools' output says of blocked event loops, read as kindly as it can be: a stretch of at least the threshold that the output
 * shows, and the innermost function of the target's own files in it. None of these but blocksnoop says "blocked" itself.
 */

/** A stretch in which the output shows a loop that does not turn, by the tool's own clock. */
export interface Claim {
  readonly from: Seconds;
  readonly to: Seconds;
  readonly function: string | null;
}

/** As trace's default `--lag-threshold`. */
export const THRESHOLD: Seconds = 0.05;

interface FrameText {
  readonly function: string;
  readonly file: string;
}
interface SampledStack {
  readonly from: Seconds;
  readonly to: Seconds;
  /** Outermost first. */
  readonly frames: readonly FrameText[];
}

/** Where the functions that block are: test/targets. */
const isTargets = ({ file }: FrameText): boolean => file.includes('/test/targets/');
/** `Handle._run` of asyncio/events.py is on the stack exactly while a callback runs. */
const runsCallback = ({ frames }: SampledStack): boolean =>
  frames.some(({ function: name, file }) => /(^|\.)_run$/.test(name) && file.endsWith('events.py'));

/** Samples one after the other in which a callback runs are one stretch; nothing in them tells two callbacks apart. */
function claimsOf(samples: Iterable<SampledStack>): Claim[] {
  const claims: Claim[] = [];
  let from = 0;
  let to = 0;
  let functions: Map<string, Seconds> | null = null;
  const close = (): void => {
    const [most] = [...(functions ?? [])].toSorted((a, b) => b[1] - a[1]);
    if (functions !== null && to - from >= THRESHOLD)
      claims.push({ from, to, function: most?.[0] ?? null });
    functions = null;
  };
  for (const sample of samples) {
    if (!runsCallback(sample)) {
      close();
      continue;
    }
    if (functions === null) {
      functions = new Map();
      from = sample.from;
    }
    to = sample.to;
    const own = sample.frames.findLast(isTargets)?.function;
    if (own !== undefined) functions.set(own, (functions.get(own) ?? 0) + to - sample.from);
  }
  close();
  return claims;
}

interface ChromeEvent {
  readonly ph: string;
  readonly tid: number;
  readonly ts: number;
  readonly name: string;
  readonly args?: { readonly filename?: string };
}

/** py-spy's `chrometrace`: frames begin and end; between two events the stack stands still. */
export function claimsOfPySpy(text: string): Claim[] {
  const events = JSON.parse(text) as readonly ChromeEvent[];
  const loop = events.find(({ name }) => /(^|\.)_run_once$/.test(name))?.tid;
  const samples: SampledStack[] = [];
  const stack: FrameText[] = [];
  let last: Seconds | null = null;
  for (const { ph, tid, ts, name, args } of events) {
    if (tid !== loop) continue;
    const at = ts / 1e6;
    if (last !== null && at > last) samples.push({ from: last, to: at, frames: [...stack] });
    last = at;
    if (ph === 'B') stack.push({ function: name, file: args?.filename ?? '' });
    if (ph === 'E') stack.pop();
  }
  return claimsOf(samples);
}

/** Austin 3's text: a line a sample, `P<pid>;T<n>:<tid>;<file>:<function>:<line>;… <microseconds since the sample before>`. */
export function claimsOfAustin(text: string, pid: number): Claim[] {
  const samples: SampledStack[] = [];
  let at = 0;
  for (const line of text.split('\n')) {
    const match = /^P\d+;T\d+:(\d+);(.*) (\d+)$/.exec(line);
    if (match === null || Number(match[1]) !== pid) continue;
    const to = at + Number(match[3]) / 1e6;
    const frames = (match[2] ?? '').split(';').map((frame) => {
      const [, file = '', name = ''] = /^(.*):([^:]*):\d+$/.exec(frame) ?? [];
      return { file, function: name };
    });
    samples.push({ from: at, to, frames });
    at = to;
  }
  return claimsOf(samples);
}

/** `perf trace -T -e epoll_…`: the loop does not turn between the end of one wait in its own epoll and the start of the next. */
export function claimsOfPerf(text: string, pid: number): Claim[] {
  const pattern = /^\s*([\d.]+) \(\s*([\d.]+) ms\): (?:.*?\/(\d+) )?epoll_\w+\(epfd: (\d+)/;
  const waits: { from: Seconds; to: Seconds; epoll: string }[] = [];
  for (const line of text.split('\n')) {
    const match = pattern.exec(line);
    if (match === null || (match[3] !== undefined && Number(match[3]) !== pid)) continue;
    const from = Number(match[1]) / 1e3;
    waits.push({ from, to: from + Number(match[2]) / 1e3, epoll: match[4] ?? '' });
  }
  // A nested loop (execFileSync) waits in an epoll of its own while the main one stands still.
  const epolls = [...new Set(waits.map(({ epoll }) => epoll))];
  const [main = []] = epolls
    .map((one) => waits.filter(({ epoll }) => epoll === one))
    .toSorted((a, b) => b.length - a.length);
  return main.slice(1).flatMap(({ from: to }, index) => {
    const from = main[index]?.to ?? to;
    return to - from >= THRESHOLD ? [{ from, to, function: null }] : [];
  });
}

interface BlocksnoopEvent {
  readonly type: string;
  readonly duration_ms: number;
  readonly timestamp_s: number;
  readonly python_stacks: readonly (readonly Readonly<Record<string, unknown>>[])[] | null;
}

/** blocksnoop's JSON Lines: a block each, told at its end. */
export function claimsOfBlocksnoop(text: string): Claim[] {
  return text
    .split('\n')
    .filter((line) => line.startsWith('{') && line.includes('"blocking_event"'))
    .map((line) => JSON.parse(line) as BlocksnoopEvent)
    .map(({ duration_ms: ms, timestamp_s: to, python_stacks: stacks }) => {
      const named = (stacks ?? [])
        .flat()
        .find((frame) => String(frame['file']).includes('/test/targets/'));
      const name = named?.['function'];
      return { from: to - ms / 1e3, to, function: typeof name === 'string' ? name : null };
    });
}

/** So many claims are tried as the partner of a block; more find nothing better. */
const TRIED = 24;

/**
 * The claims on the target's clock. Most outputs have no absolute time, so the shift is taken under which they cover most of what
 * really happened: the best that anybody who looks at the output could do.
 */
export function alignClaims(claims: readonly Claim[], truth: readonly TruthBlock[]): Claim[] {
  const step = Math.max(1, Math.floor(claims.length / TRIED));
  const tried = claims.filter((_, index) => index % step === 0);
  let best = { shift: 0, covered: -1 };
  for (const claim of tried) {
    for (const block of truth) {
      const shift = block.start - claim.from;
      const covered = coverage(claims, truth, shift);
      if (covered > best.covered) best = { shift, covered };
    }
  }
  return claims.map(({ from, to, function: name }) => ({
    from: from + best.shift,
    to: to + best.shift,
    function: name,
  }));
}

/** Length of the overlap of two series that are each in order of time. */
function coverage(claims: readonly Claim[], truth: readonly TruthBlock[], shift: Seconds): Seconds {
  let covered = 0;
  let first = 0;
  for (const { from, to } of claims) {
    while (first < truth.length && (truth[first]?.end ?? 0) < from + shift) first++;
    for (let i = first; i < truth.length; i++) {
      const { start = 0, end = 0 } = truth[i] ?? {};
      if (start > to + shift) break;
      covered += Math.max(0, Math.min(end, to + shift) - Math.max(start, from + shift));
    }
  }
  return covered;
}
