import { CGROUP_ATTR, CGROUP_METRIC } from '../core/semconv-cgroup.ts';
import { percentText } from '../core/text.ts';
import type {
  Bytes,
  Detector,
  Evidence,
  Ratio,
  RecordingView,
  Series,
  UnnumberedFinding,
} from '../core/types.ts';
import { formatBytes } from '../core/units.ts';
import { textAttribute } from './attributes.ts';

/**
 * TRC121 memory-limit: the control group has little left below its memory limit, or the kernel has already killed in it. The page cache
 * does not count: it fills any limit in time, and the kernel drops it when memory is asked for. Assumed: nobody raises the limit as it is neared.
 */

/** What is left of a limit is gone with one large request from here on, and the kernel then kills. */
const WARNING_SHARE: Ratio = 0.95;
/** Worth knowing: an engine that holds a fixed share of a container lives here for years. */
const NOTE_SHARE: Ratio = 0.9;
/** Each is a stop of whoever asked for memory, until some was reclaimed; a few happen when a cache is filled. */
const LEAST_HELD_UP = 10;

/** A limit of a control group, the one that is met first. */
export interface Limit {
  readonly kind: 'max' | 'high';
  readonly bytes: Bytes;
  readonly folder: string | null;
}

/** What a control group holds without the page cache, in the course of a run. */
export interface Held {
  readonly limit: Limit;
  readonly first: Bytes;
  readonly last: Bytes;
  readonly most: Bytes;
}

export const memoryLimit: Detector = {
  code: 'TRC121',
  *detect(view) {
    const killed = riseOf(view, 'oom_kill');
    const held = heldOf(view);
    if (killed > 0) yield finding(view, held, { mechanism: 'oom-kill', killed });
    else if (held !== null && held.limit.kind === 'high' && riseOf(view, 'high') >= LEAST_HELD_UP)
      yield finding(view, held, { mechanism: 'held-up', killed });
    else if (held !== null && shareOf(held) >= NOTE_SHARE)
      yield finding(view, held, { mechanism: 'near-limit', killed });
  },
};

const shareOf = ({ most, limit }: Held): Ratio => most / limit.bytes;

/** Null without a limit, or where what the cache holds cannot be told from the rest. */
export function heldOf(view: RecordingView): Held | null {
  const limits = [
    limitOf(view.series(CGROUP_METRIC.cgroupMemoryLimit.name)[0], 'max'),
    limitOf(view.series(CGROUP_METRIC.cgroupMemoryHigh.name)[0], 'high'),
  ].flatMap((limit) => limit ?? []);
  const limit = limits.toSorted((a, b) => a.bytes - b.bytes)[0];
  const [series] = view.series(CGROUP_METRIC.cgroupUnreclaimable.name);
  const values = series?.value;
  if (limit === undefined || values === undefined || values.length === 0) return null;
  const most = [values, series?.extremes?.value ?? []]
    .flatMap((some) => [...some])
    .reduce((a, b) => Math.max(a, b), 0);
  return { limit, first: values[0] ?? 0, last: values.at(-1) ?? 0, most };
}

function limitOf(series: Series | undefined, kind: Limit['kind']): Limit | null {
  const bytes = series?.value.at(-1);
  if (bytes === undefined || bytes <= 0) return null;
  return { kind, bytes, folder: textAttribute(series?.attributes, CGROUP_ATTR.folder) };
}

function riseOf(view: RecordingView, event: string): number {
  const [series] = view.series(CGROUP_METRIC.cgroupMemoryEvents.name, {
    [CGROUP_ATTR.memoryEvent]: event,
  });
  return Math.max(0, (series?.value.at(-1) ?? 0) - (series?.value[0] ?? 0));
}

type Mechanism = 'oom-kill' | 'held-up' | 'near-limit';

function finding(
  view: RecordingView,
  held: Held | null,
  { mechanism, killed }: { mechanism: Mechanism; killed: number },
): UnnumberedFinding {
  const isGrave = mechanism !== 'near-limit' || (held !== null && shareOf(held) >= WARNING_SHARE);
  return {
    code: 'TRC121',
    kind: 'memory-limit',
    mechanism,
    severity: isGrave ? 'warning' : 'note',
    confidence: 'confirmed',
    pid: view.start.targets[0]?.pid ?? null,
    summary: summaryOf(view, held, { mechanism, killed }),
    where: [],
    evidence: [evidenceOf(view, held, killed)],
    measure: {
      ...(held === null
        ? {}
        : {
            limit_bytes: held.limit.bytes,
            worst_bytes: held.most,
            last_bytes: held.last,
            share_ratio: Math.min(1, shareOf(held)),
          }),
      killed_count: killed,
    },
    remedy: REMEDY,
  };
}

function summaryOf(
  view: RecordingView,
  held: Held | null,
  { mechanism, killed }: { mechanism: Mechanism; killed: number },
): string {
  const of = held === null ? '' : ` of ${formatBytes(held.limit.bytes)}`;
  switch (mechanism) {
    case 'oom-kill':
      return `the kernel killed ${killed === 1 ? 'a process' : `${killed} processes`} of the cgroup: its memory limit${of} was met`;
    case 'held-up':
      return `the cgroup is above its memory.high${of}: whoever asks for memory was held up ${riseOf(view, 'high')} times`;
    case 'near-limit': {
      const share = held === null ? 0 : shareOf(held);
      return `the cgroup holds ${percentText(share)} of its memory limit${of}, the page cache left out: above it the kernel ${held?.limit.kind === 'high' ? 'holds up' : 'kills'}`;
    }
  }
}

function evidenceOf(view: RecordingView, held: Held | null, killed: number): Evidence {
  const counts = { limit_met: riseOf(view, 'max'), held_up: riseOf(view, 'high'), killed };
  const usage = view.series(CGROUP_METRIC.containerMemoryUsage.name)[0]?.value.at(-1);
  const parts =
    held === null
      ? []
      : [
          `held ${formatBytes(held.first)} at first, ${formatBytes(held.last)} at last, ${formatBytes(held.most)} at most`,
          ...(usage === undefined ? [] : [`with the page cache ${formatBytes(usage)} at last`]),
          `${held.limit.kind === 'high' ? 'memory.high' : 'its limit'} is ${formatBytes(held.limit.bytes)}${held.limit.folder === null ? '' : ` (${held.limit.folder})`}`,
        ];
  return {
    kind: 'cgroup',
    summary: [
      ...parts,
      `during the run the limit was met ${counts.limit_met} times and ${killed} processes killed`,
    ].join('; '),
    data: counts,
  };
}

const REMEDY =
  'Raise the limit (docker update --memory, resources.limits.memory in Kubernetes, MemoryMax= in systemd), or hold less: fewer workers, smaller caches and batches. If it grows, see which process does.';
