import { ATTR, METRIC } from '../core/semconv.ts';
import { mechanismOf } from '../core/catalogue/catalogue.ts';
import { printable } from '../core/text.ts';
import type { Detector, Ratio, RecordingView, UnnumberedFinding } from '../core/types.ts';
import {
  type Growth,
  grows,
  inconclusiveFinding,
  leakFinding,
  type Least,
} from './growth-finding.ts';
import { sumOf } from './growth-by-work.ts';
import { openedBy } from './growth-node-heap.ts';
import { holderOf, newThreadPlaces, type NumberHolder } from './growth-number.ts';
import {
  BY_KIND,
  BY_PEER,
  BY_STATE,
  BY_THREAD_NAME,
  type Owner,
  ownerOf,
  partsOf,
} from './growth-owner.ts';
import { type Trend, trendOf } from '../core/trend.ts';

/**
 * TRC111 to TRC113 and TRC119: what grows in number and does not level off. A trend alone is no leak (caches fill, pools warm up, load rises): a
 * leak has an owner, or grows with the work done. Anything else is a note. Assumed: readings about evenly spaced, one a second, and a rise that would
 * go on; that nobody will give back what was taken cannot be seen, so no confidence is above `likely`.
 */

/** A leak of 16 descriptors in half a minute fills the usual soft limit of 1,024 in half an hour; less may be a few new clients. */
const LEAST_FDS: Least = { rise: 16, ratio: 0.25 };
/** In seconds, more than a start-up or a burst of requests opens, and half as many again as there were. */
const LEAST_FDS_SHORT: Least = { rise: 40, ratio: 0.5 };
/** Below 8 it is a pool that takes another worker. */
const LEAST_THREADS: Least = { rise: 8, ratio: 0.25 };
/** Above the default sizes of pools that fill on demand: 32 (Python's ThreadPoolExecutor), 40 (anyio). */
const LEAST_THREADS_SHORT: Least = { rise: 64, ratio: 0.5 };
/** Of the CPU time a second, in the last third to that in the first: requests of one kind cost within that what they cost before. */
const LEVEL_WORK: Ratio = 1.25;
/** TCP states in which the peer has closed and only this program still holds on: nothing but `close` ends them. */
const FORGOTTEN: ReadonlySet<string> = new Set(['close_wait']);
/** As the sweep of descriptors calls them. */
const SOCKET = 'socket';
/** Not a TCP connection: it has no state that could tell use from neglect. */
const NO_STATE = 'other';

export const fdLeak: Detector = {
  code: 'TRC111',
  *detect(view) {
    for (const series of view.series(METRIC.fds.name)) {
      const trend = trendOf(series.at, series.value);
      const finding = grows(trend, LEAST_FDS, LEAST_FDS_SHORT)
        ? descriptorFinding(view, { what: 'open descriptors', verb: 'grow', unit: 'count', trend })
        : null;
      if (finding !== null && finding.severity !== 'note') yield finding;
      else yield* [partFinding(view) ?? finding].filter((one) => one !== null);
    }
  },
};

/** A leak that the coming and going of others hides in the total: one kind of descriptor, or one state of a connection, that grows. */
function partFinding(view: RecordingView): UnnumberedFinding | null {
  for (const [name, { at, value }] of partsOf(view, BY_KIND)) {
    if (name === SOCKET) continue;
    const trend = trendOf(at, value);
    if (!grows(trend, LEAST_FDS, LEAST_FDS_SHORT)) continue;
    const growth: Growth = { what: 'open descriptors', verb: 'grow', unit: 'count', trend };
    return kindFinding(view, growth, partOwner(name, trend));
  }
  for (const [name, { at, value }] of partsOf(view, BY_STATE)) {
    if (!FORGOTTEN.has(name)) continue;
    const trend = trendOf(at, value);
    if (!grows(trend, LEAST_FDS, LEAST_FDS_SHORT)) continue;
    return stateFinding(
      view,
      { what: 'connections', verb: 'grow', unit: 'count', trend },
      partOwner(name, trend),
    );
  }
  return null;
}

function partOwner(name: string, { first, last }: Trend): Owner {
  return { name: printable(name, 60), rise: last - first, share: 1 };
}

function descriptorFinding(view: RecordingView, growth: Growth): UnnumberedFinding {
  const rise = growth.trend.last - growth.trend.first;
  const kind = ownerOf(view, BY_KIND, { rise });
  if (kind === null) {
    return inconclusiveFinding(view, growth, {
      why: 'of which kind they are could not be seen, or no kind stands out',
      remedy: 'Attach as the owner of the process, or with CAP_SYS_PTRACE, to see what they are.',
    });
  }
  if (kind.name !== SOCKET) return kindFinding(view, growth, kind);
  const state = ownerOf(view, BY_STATE, { rise: kind.rise });
  if (state?.name === NO_STATE) return kindFinding(view, growth, kind);
  if (state !== null && FORGOTTEN.has(state.name)) return stateFinding(view, growth, state);
  const idle = idleFinding(view, growth, state ?? kind);
  if (idle !== null) return idle;
  const which = state === null ? '' : ` in state ${state.name}`;
  return inconclusiveFinding(view, growth, {
    why: `they are connections${which}${whosePeer(view, state ?? kind, state)}, which may be load that rises`,
    remedy: 'Watch longer under steady load, and compare with the number of clients.',
  });
}

/**
 * Connections that this program opened (all to one port of one peer) and that become more while its work does not: load that rises would
 * cost more. The objects that become as many more are named; without any it stays open what they are for.
 */
function idleFinding(view: RecordingView, growth: Growth, state: Owner): UnnumberedFinding | null {
  const peer = whosePeer(view, state, state.name === SOCKET ? null : state);
  if (peer === '') return null;
  const holder = holderOf(view, growth);
  if (holder === null || !isWorkLevel(view)) return null;
  const finding = leakFinding(view, growth, {
    code: 'TRC113',
    kind: 'socket-leak',
    mechanism: 'idle',
    owned: `because connections stay open that bring no more work${peer}`,
    owner: state,
    remedy:
      'Use one client for all requests, or close each when it is done with (`with`, `async with`, close()).',
  });
  return withHolder(finding, holder);
}

/** Whether the program computes in the last third of the run about as much as in the first. */
function isWorkLevel(view: RecordingView): boolean {
  const { at, value } = sumOf(view.series(METRIC.cpuTime.name));
  const third = Math.floor(at.length / 3);
  if (third < 3) return false;
  const rate = (from: number, to: number): number =>
    ((value[to] ?? 0) - (value[from] ?? 0)) / ((at[to] ?? 0) - (at[from] ?? 0));
  const last = at.length - 1;
  return rate(last - third, last) <= rate(0, third) * LEVEL_WORK;
}

/** `, most of them with 10.0.0.9:8080`. */
function whosePeer(view: RecordingView, { rise }: Owner, state: Owner | null): string {
  const within = state === null ? {} : { [ATTR.connectionState]: state.name };
  const peer = ownerOf(view, BY_PEER, { rise, within });
  return peer === null ? '' : `, most of them with ${peer.name}`;
}

function stateFinding(view: RecordingView, growth: Growth, state: Owner): UnnumberedFinding {
  const whose = whosePeer(view, state, state);
  const finding = leakFinding(view, growth, {
    code: 'TRC113',
    kind: 'socket-leak',
    mechanism: 'close_wait',
    owned: `because connections that the other side has closed stay open (${state.name})${whose}`,
    owner: state,
    remedy:
      'Close connections when the peer does: a response that is not read to its end, or a client without `with` or close().',
  });
  return withHolder(finding, holderOf(view, growth));
}

/** The finding with what holds them, where objects were looked at. */
function withHolder(finding: UnnumberedFinding, holder: NumberHolder | null): UnnumberedFinding {
  if (holder === null) return finding;
  const { where, evidence } = finding;
  const [first, ...others] = evidence;
  return {
    ...finding,
    where: [...where, ...holder.places],
    evidence: [first, ...holder.evidence, ...others],
  };
}

/** Functions of Node's library that open a file, a pipe or a socket: what they made stays as long as it is open. */
const OPENS_IN = /^node:(?:internal\/)?(?:fs|net|dgram|child_process|http|tls)(?:[/_]|$)/;

function kindFinding(view: RecordingView, growth: Growth, kind: Owner): UnnumberedFinding {
  const where = openedBy(view, ({ file }) => OPENS_IN.test(file));
  const finding = kindLeak(view, growth, kind);
  return where.length > 0 ? { ...finding, where } : withHolder(finding, holderOf(view, growth));
}

function kindLeak(view: RecordingView, growth: Growth, kind: Owner): UnnumberedFinding {
  return leakFinding(view, growth, {
    code: 'TRC111',
    kind: 'fd-leak',
    mechanism: mechanismOf('fd-leak', kind.name),
    owned: `${kind.share === 1 ? 'those' : 'most of them'} of kind ${kind.name}`,
    owner: kind,
    remedy: 'Close what is opened, also when an exception is thrown (`with`, try … finally).',
  });
}

export const threadLeak: Detector = {
  code: 'TRC112',
  *detect(view) {
    for (const series of view.series(METRIC.threads.name)) {
      const trend = trendOf(series.at, series.value);
      const rise = trend.last - trend.first;
      const growth: Growth = { what: 'threads', verb: 'grow', unit: 'count', trend };
      if (grows(trend, LEAST_THREADS, LEAST_THREADS_SHORT)) {
        yield threadFinding(view, growth, ownerOf(view, BY_THREAD_NAME, { rise }));
        continue;
      }
      for (const [name, { at, value }] of partsOf(view, BY_THREAD_NAME)) {
        const part = trendOf(at, value);
        if (!grows(part, LEAST_THREADS, LEAST_THREADS_SHORT)) continue;
        yield threadFinding(view, { ...growth, trend: part }, partOwner(name, part));
        break;
      }
    }
  },
};

function threadFinding(
  view: RecordingView,
  growth: Growth,
  owner: Owner | null,
): UnnumberedFinding {
  if (owner === null) {
    return inconclusiveFinding(view, growth, {
      why: 'no name of a thread stands out',
      remedy: 'Name the threads where they are started, and watch again.',
    });
  }
  const finding = leakFinding(view, growth, {
    code: 'TRC112',
    kind: 'thread-leak',
    // A name says who, not how.
    mechanism: null,
    owned: `most of them named ${owner.name}`,
    owner,
    remedy: 'Use one pool of bounded size, and shut executors down that are made for one task.',
  });
  return withHolder({ ...finding, where: newThreadPlaces(view) }, holderOf(view, growth));
}
