import { ATTR, METRIC } from '../core/semconv.ts';
import type { Bytes, Detector, Finding, Ratio, RecordingView, Seconds } from '../core/types.ts';
import { type Growth, inconclusiveFinding, leakFinding } from './growth-finding.ts';
import { BY_KIND, BY_PEER, BY_STATE, BY_THREAD_NAME, type Owner, ownerOf } from './growth-owner.ts';
import { growthByEvents } from './growth-by-events.ts';
import { type Trend, trendOf } from './trend.ts';

/**
 * TRC110 to TRC113 and TRC119: what grows and does not level off. A trend alone is no leak (caches fill, pools warm up, load rises): a
 * leak has an owner, or grows with the work done. Anything else is a note.
 */

/** Growth that is worth a word, beside being certain. */
interface Least {
  readonly rise: number;
  /** Of the level at the start. */
  readonly ratio: Ratio;
}

/** From this many readings on (half a minute at one a second) a trend is tested; before, it must be plain to the eye. */
const LONG_READINGS = 30;
/** A leak of 16 descriptors in half a minute fills the usual soft limit of 1,024 in half an hour; less may be a few new clients. */
const LEAST_FDS: Least = { rise: 16, ratio: 0.25 };
/** In seconds, more than a start-up or a burst of requests opens, and half as many again as there were. */
const LEAST_FDS_SHORT: Least = { rise: 40, ratio: 0.5 };
/** Below 8 it is a pool that takes another worker. */
const LEAST_THREADS: Least = { rise: 8, ratio: 0.25 };
/** Above the default sizes of pools that fill on demand: 32 (Python's ThreadPoolExecutor), 40 (anyio). */
const LEAST_THREADS_SHORT: Least = { rise: 64, ratio: 0.5 };
/** glibc's arenas grow in steps of up to 64 MiB each; 8 MiB and a tenth is where growth is no longer one buffer. */
const LEAST_MEMORY: Least = { rise: 8 * 2 ** 20, ratio: 0.1 };
/** Interpreters, JITs and allocators warm up in the first minute under load: before, resident memory says nothing. */
const LEAST_MEMORY_TIME: Seconds = 60;

/** TCP states in which the peer has closed and only this program still holds on: nothing but `close` ends them. */
const FORGOTTEN: ReadonlySet<string> = new Set(['close_wait']);
/** Not a TCP connection: it has no state that could tell use from neglect. */
const NO_STATE = 'other';

function grows(trend: Trend, long: Least, short: Least | null): boolean {
  if (trend.verdict !== 'grows') return false;
  const least = trend.readings >= LONG_READINGS ? long : short;
  const rise = trend.last - trend.first;
  return least !== null && rise >= least.rise && rise >= trend.first * least.ratio;
}

export const memoryLeak: Detector = {
  code: 'TRC110',
  name: 'memory-leak',
  needs: [METRIC.memoryUsage.name],
  *detect(view) {
    const { at, value } = residentAndSwapped(view);
    if ((at.at(-1) ?? 0) - (at[0] ?? 0) < LEAST_MEMORY_TIME) return;
    const trend = trendOf(at, value);
    if (!grows(trend, LEAST_MEMORY, null)) return;
    const growth: Growth = { what: 'memory and swap', unit: 'bytes', trend };
    const perEvent = growthByEvents(view, { at, value });
    if (perEvent === null) {
      yield inconclusiveFinding(view, growth, {
        why: 'whether a cache fills or memory leaks cannot be told without knowing what holds it',
        remedy:
          'Watch longer (-d 10m) under steady load: a cache levels off. If it goes on, compare two heap snapshots of the runtime.',
      });
      return;
    }
    yield leakFinding(view, growth, {
      code: 'TRC110',
      kind: 'memory-leak',
      mechanism: 'per-io-event',
      owned: 'and by as much more as more is handled',
      owner: null,
      extra: {
        growth_by_event_bytes: perEvent.bytes,
        rank_correlation_ratio: perEvent.correlation,
      },
      remedy:
        'Look for what each request leaves behind: compare two heap snapshots of the runtime.',
    });
  },
};

export const fdLeak: Detector = {
  code: 'TRC111',
  name: 'fd-leak',
  needs: [METRIC.fds.name],
  *detect(view) {
    for (const series of view.series(METRIC.fds.name)) {
      const trend = trendOf(series.at, series.value);
      if (!grows(trend, LEAST_FDS, LEAST_FDS_SHORT)) continue;
      yield descriptorFinding(view, { what: 'open descriptors', unit: 'count', trend });
    }
  },
};

function descriptorFinding(view: RecordingView, growth: Growth): Omit<Finding, 'id'> {
  const rise = growth.trend.last - growth.trend.first;
  const kind = ownerOf(view, BY_KIND, { rise });
  if (kind === null) {
    return inconclusiveFinding(view, growth, {
      why: 'of which kind they are could not be seen, or no kind stands out',
      remedy: 'Attach as the owner of the process, or with CAP_SYS_PTRACE, to see what they are.',
    });
  }
  if (kind.name !== 'socket') return kindFinding(view, growth, kind);
  const state = ownerOf(view, BY_STATE, { rise: kind.rise });
  if (state?.name === NO_STATE) return kindFinding(view, growth, kind);
  if (state === null || !FORGOTTEN.has(state.name)) {
    return inconclusiveFinding(view, growth, {
      why: `they are connections${state === null ? '' : ` in state ${state.name}`}, which may be load that rises`,
      remedy: 'Watch longer under steady load, and compare with the number of clients.',
    });
  }
  const within = { [ATTR.connectionState]: state.name };
  const peer = ownerOf(view, BY_PEER, { rise: state.rise, within });
  const whose = peer === null ? '' : `, most of them with ${peer.name}`;
  return leakFinding(view, growth, {
    code: 'TRC113',
    kind: 'socket-leak',
    mechanism: state.name,
    owned: `because connections that the other side has closed stay open (${state.name})${whose}`,
    owner: state,
    remedy:
      'Close connections when the peer does: a response that is not read to its end, or a client without `with` or close().',
  });
}

function kindFinding(view: RecordingView, growth: Growth, kind: Owner): Omit<Finding, 'id'> {
  return leakFinding(view, growth, {
    code: 'TRC111',
    kind: 'fd-leak',
    mechanism: kind.name,
    owned: `most of them of kind ${kind.name}`,
    owner: kind,
    remedy: 'Close what is opened, also when an exception is thrown (`with`, try … finally).',
  });
}

export const threadLeak: Detector = {
  code: 'TRC112',
  name: 'thread-leak',
  needs: [METRIC.threads.name],
  *detect(view) {
    for (const series of view.series(METRIC.threads.name)) {
      const trend = trendOf(series.at, series.value);
      if (!grows(trend, LEAST_THREADS, LEAST_THREADS_SHORT)) continue;
      const growth: Growth = { what: 'threads', unit: 'count', trend };
      const owner = ownerOf(view, BY_THREAD_NAME, { rise: trend.last - trend.first });
      if (owner === null) {
        yield inconclusiveFinding(view, growth, {
          why: 'no name of a thread stands out',
          remedy: 'Name the threads where they are started, and watch again.',
        });
        continue;
      }
      yield leakFinding(view, growth, {
        code: 'TRC112',
        kind: 'thread-leak',
        // A name says who, not how.
        mechanism: null,
        owned: `most of them named ${owner.name}`,
        owner,
        remedy: 'Use one pool of bounded size, and shut executors down that are made for one task.',
      });
    }
  },
};

/** What the kernel moved to swap is still held: without it, memory pressure would look like a leak that stopped. */
function residentAndSwapped(view: RecordingView): {
  at: readonly Seconds[];
  value: readonly Bytes[];
} {
  const [resident] = view.series(METRIC.memoryUsage.name);
  const [swapped] = view.series(METRIC.swap.name);
  if (resident === undefined) return { at: [], value: [] };
  const swap = new Map<number, number>();
  swapped?.at.forEach((time, i) => swap.set(time, swapped.value[i] ?? 0));
  const at = [...resident.at];
  return { at, value: at.map((time, i) => (resident.value[i] ?? 0) + (swap.get(time) ?? 0)) };
}
