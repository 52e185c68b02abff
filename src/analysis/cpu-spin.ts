import { frameOrigin, type WeightedStack } from '../core/place.ts';
import { ATTR, EVENT } from '../core/semconv.ts';
import { percentText } from '../core/text.ts';
import type {
  Detector,
  Event,
  Evidence,
  Place,
  Ratio,
  RecordingView,
  UnnumberedFinding,
} from '../core/types.ts';
import { formatSeconds } from '../core/units.ts';
import { numberAttribute, textAttribute, weightedStacks } from './attributes.ts';
import { throttlingRecord } from './throttling.ts';

/**
 * TRC102 cpu-spin: an event loop that turns at full speed with nothing arriving: a retry without a wait, a cancellation delivered again
 * and again, a poll with no timeout. Full load looks the same to a CPU meter; what tells them apart is that a spinning loop polls in
 * every few microseconds of work and is handed no I/O. Assumed: work that arrives otherwise (a queue that another thread fills) takes longer than a turn.
 */

/** Shorter bursts at full CPU are ordinary work: a start-up, a garbage collection, one large response. */
const SPIN_SECONDS = 4;
/** The sampler reports a second's activity from this share of a core on. */
const SPIN_SHARE: Ratio = 0.8;
/** Iterations per second on a core of a loop that does nothing else. A turn with 0.2 ms of work makes fewer; libuv's empty turn takes about 2 µs. */
const SPIN_ITERATIONS = 5000;
/** I/O events per iteration below which nothing is arriving. */
const SPIN_EVENTS: Ratio = 0.01;
/**
 * Stock asyncio does not count its turns. Where it only turns, the loop's own code was innermost in 34 of 100 stacks (anyio 4.5.0's
 * cancellation loop); with 0.3 ms of work a turn in none of 100.
 */
const SPIN_MACHINERY: Ratio = 0.12;
/** Stacks below this say too little about shares: ±20 % at 95 %. */
const SPIN_STACKS = 20;
/**
 * Functions of asyncio and uvloop that run only when a descriptor became ready, when something is sent, or when work goes to another thread
 * and its result comes back: a loop that hands thousands of small calls a second to threads works (limits 5.4.0's expiry on the bug bench).
 */
const ARRIVES =
  /(?:(?:^|[._])(?:_read_ready\w*|_write_ready|_accept_connection|data_received|_sock_recv|_sock_sendall|_read_from_self|_copy_future_state|run_in_executor)|Transport\.write)$/;
/** Where a stack is when the loop itself, or the C code that steps a task, and not a function of the program is running. */
const MACHINERY =
  /(?:^|\.)(?:select|_run_once|run_forever|_process_events|_add_callback|time|Handle\._run|_run)$/;
/** How a callback asks to be run again at the next turn. */
const RESCHEDULES = /(?:^|\.)(?:call_soon|_call_soon)$/;
/**
 * A thread that waits for a core for most of its time is seen as one that a quota stops: in the loop that just woke up. What spins has callbacks
 * of its own, which are innermost in as many stacks as the loop.
 */
const STARVED_SHARE: Ratio = 0.5;
const STARVED_CALLBACKS: Ratio = 0.2;
/**
 * Nor does what spins get next to nothing: it takes its turn whenever it comes. A server that looked at its clock ten times a second got 0.4 %
 * among 25 threads for two cores, and waited for the rest.
 */
const SPIN_GOT: Ratio = 0.02;
/** Functions with less of the time than this are not named. */
const NAMED_SHARE: Ratio = 0.1;
const NAMED_LIMIT = 5;

/** From this share of periods on a quota decides when a thread is seen. */
const THROTTLED_SHARE: Ratio = 0.25;

interface Spin {
  readonly events: readonly Event[];
  readonly stacks: readonly WeightedStack[];
  readonly iterations: number | null;
  readonly ioEvents: number | null;
  /** Share of its periods in which the CPU quota of its control group stopped it. */
  readonly throttled: Ratio;
}

export const cpuSpin: Detector = {
  code: 'TRC102',
  *detect(view) {
    const byThread = new Map<string, Event[]>();
    for (const event of view.events(EVENT.activity)) {
      if (demandOf(event) < SPIN_SHARE) continue;
      const thread = `${textAttribute(event.attributes, ATTR.pid)} ${textAttribute(event.attributes, ATTR.threadId)}`;
      const events = byThread.get(thread) ?? [];
      byThread.set(thread, events);
      events.push(event);
    }
    for (const events of byThread.values()) {
      if (secondsOf(events) < SPIN_SECONDS) continue;
      const spin = readSpin(view, events);
      if (isSpinning(spin)) yield spinFinding(spin);
    }
  },
};

/** The share of a core that the thread asked for: what it got, and what it waited for. A busy machine must not hide a spin. */
function demandOf(event: Event): Ratio {
  const got = numberAttribute(event.attributes, ATTR.activityOnCpu) ?? 0;
  return got + (numberAttribute(event.attributes, ATTR.activityRunQueueWait) ?? 0);
}

/** In a long run one event stands for several seconds, its shares being their means and its counts their sums. */
function weightOfEvent(event: Event): number {
  return numberAttribute(event.attributes, ATTR.compositeCount) ?? 1;
}

function secondsOf(events: readonly Event[]): number {
  return events.reduce((sum, event) => sum + weightOfEvent(event), 0);
}

/** The sum over the seconds of what an event has for each of them. */
function sumOfShares(events: readonly Event[], key: string): number {
  return events.reduce(
    (sum, event) => sum + (numberAttribute(event.attributes, key) ?? 0) * weightOfEvent(event),
    0,
  );
}

function readSpin(view: RecordingView, events: readonly Event[]): Spin {
  const total = (key: string): number | null => {
    const values = events.map((event) => numberAttribute(event.attributes, key));
    return values.includes(null) ? null : values.reduce<number>((sum, v) => sum + (v ?? 0), 0);
  };
  return {
    events,
    stacks: events.flatMap((event) => weightedStacks(view, event.attributes)),
    iterations: total(ATTR.activityIterations),
    ioEvents: total(ATTR.activityEvents),
    throttled: throttledShare(view),
  };
}

function isSpinning(spin: Spin): boolean {
  if (spin.iterations !== null && spin.ioEvents !== null) {
    const onCpu = sumOfShares(spin.events, ATTR.activityOnCpu);
    const fast = spin.iterations / Math.max(onCpu, 0.01) >= SPIN_ITERATIONS;
    return fast && spin.ioEvents / Math.max(1, spin.iterations) < SPIN_EVENTS;
  }
  // Stopped by a quota, a thread is mostly seen where it goes on: in the loop that just woke up, whatever it came to do.
  if (spin.throttled >= THROTTLED_SHARE) return false;
  if (weightOf(spin.stacks) < SPIN_STACKS) return false;
  if (spin.stacks.some(({ frames }) => frames.some((frame) => ARRIVES.test(frame.function)))) {
    return false;
  }
  if (sumOfShares(spin.events, ATTR.activityOnCpu) / secondsOf(spin.events) < SPIN_GOT)
    return false;
  const share = machineryShare(spin.stacks);
  const waited = sumOfShares(spin.events, ATTR.activityRunQueueWait) / secondsOf(spin.events);
  return share >= SPIN_MACHINERY && (waited < STARVED_SHARE || share <= 1 - STARVED_CALLBACKS);
}

/** Share of the stacks in which the loop's own code, not a callback, was innermost. */
function machineryShare(stacks: readonly WeightedStack[]): Ratio {
  const inMachinery = stacks.filter(({ frames }) => {
    const innermost = frames[0];
    return (
      innermost !== undefined &&
      frameOrigin(innermost.file).kind === 'standard-library' &&
      MACHINERY.test(innermost.function)
    );
  });
  return weightOf(inMachinery) / Math.max(1, weightOf(stacks));
}

function spinFinding(spin: Spin): UnnumberedFinding {
  const first = spin.events[0];
  const seconds = secondsOf(spin.events);
  const mean = (key: string): number => sumOfShares(spin.events, key) / seconds;
  const where = spinPlaces(spin.stacks, textAttribute(first?.attributes, ATTR.threadName));
  const place = where[0];
  const counted: Readonly<Record<string, number>> =
    spin.iterations === null || spin.ioEvents === null
      ? {}
      : { iterations_per_s: spin.iterations / seconds, io_events_per_s: spin.ioEvents / seconds };
  const evidence: Evidence = {
    kind: 'activity',
    summary:
      spin.iterations === null
        ? `in ${weightOf(spin.stacks)} stacks over ${formatSeconds(seconds)} none handled I/O or a thread's result, and the loop itself was innermost in ${percentText(machineryShare(spin.stacks))}`
        : `${Math.round(spin.iterations / seconds)} iterations a second and ${Math.round((spin.ioEvents ?? 0) / seconds)} I/O events a second over ${formatSeconds(seconds)}`,
    data: { seconds, stack_samples: weightOf(spin.stacks) },
  };
  return {
    code: 'TRC102',
    kind: 'cpu-spin',
    mechanism: 'loop-without-wait',
    severity: 'warning',
    // Counted turns and events leave no doubt; stacks are a sample.
    confidence: spin.iterations === null ? 'likely' : 'confirmed',
    pid: numberAttribute(first?.attributes, ATTR.pid),
    summary: `the event loop spins: it used ${percentText(mean(ATTR.activityOnCpu))} of a core and nothing arrived${place === undefined ? '' : `; it keeps running ${place.function}`}`,
    where,
    evidence: [evidence],
    measure: {
      duration_s: seconds,
      cpu_ratio: mean(ATTR.activityOnCpu),
      run_queue_wait_ratio: mean(ATTR.activityRunQueueWait),
      ...counted,
    },
    remedy:
      'Let the loop wait: await the event instead of asking for it again, or back off between retries.',
  };
}

/**
 * The functions outside the standard library that the turns are spent in, those first that were seen asking to be run again: each turn
 * runs several callbacks, and the one that puts itself back is the cause.
 */
function spinPlaces(stacks: readonly WeightedStack[], thread: string | null): readonly Place[] {
  const held = new Map<string, { place: Place; weight: number; reschedules: boolean }>();
  const inCallbacks = stacks.filter(({ frames }) => !MACHINERY.test(frames[0]?.function ?? ''));
  for (const { frames, weight } of inCallbacks) {
    const index = frames.findIndex((frame) => frameOrigin(frame.file).kind !== 'standard-library');
    const frame = frames[index];
    if (frame === undefined) continue;
    const key = `${frame.function}\n${frame.file}`;
    const { module } = frameOrigin(frame.file);
    const entry = held.get(key) ?? {
      place: { ...frame, module, thread, share: 0 },
      weight: 0,
      reschedules: false,
    };
    held.set(key, entry);
    entry.weight += weight;
    entry.reschedules ||= RESCHEDULES.test(frames[index - 1]?.function ?? '');
  }
  const total = weightOf(inCallbacks);
  return [...held.values()]
    .map((entry) => ({ ...entry, share: entry.weight / Math.max(1, total) }))
    .filter((entry) => entry.share >= NAMED_SHARE)
    .sort((a, b) => Number(b.reschedules) - Number(a.reschedules) || b.share - a.share)
    .slice(0, NAMED_LIMIT)
    .map(({ place, share }) => ({ ...place, share }));
}

function weightOf(stacks: readonly WeightedStack[]): number {
  return stacks.reduce((sum, stack) => sum + stack.weight, 0);
}

function throttledShare(view: RecordingView): Ratio {
  const record = throttlingRecord(view);
  if (record === null) return 0;
  const { periods, throttledPeriods } = record.between(0, record.at.length - 1);
  return throttledPeriods / Math.max(1, periods);
}
