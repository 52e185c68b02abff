import type {
  Finding,
  Ratio,
  RecordingView,
  UnnumberedFinding,
  MechanismOf,
  UnnumberedOf,
} from '../core/types.ts';
import type { Owner } from './growth-owner.ts';
import type { Trend } from '../core/trend.ts';
import { formatBytes, formatNumber, formatProbability, formatSeconds } from '../core/units.ts';

/** From a trend and its owner to a finding, the same form for everything that grows. */

/** What grew and what is known of it. */
export interface Growth {
  /** As a sentence begins: `open descriptors`. */
  readonly what: string;
  readonly verb: 'grow' | 'grows';
  readonly unit: 'count' | 'bytes';
  readonly trend: Trend;
}

/** Growth that is worth a word, beside being certain. */
export interface Least {
  readonly rise: number;
  /** Of the level at the start. */
  readonly ratio: Ratio;
}

/** From this many readings on (half a minute at one a second) a trend is tested; before, it must be plain to the eye. */
const LONG_READINGS = 30;

/** Whether a trend grows by enough; `short` is for runs below half a minute, null: never. */
export function grows(trend: Trend, long: Least, short: Least | null): boolean {
  if (trend.verdict !== 'grows') return false;
  const least = trend.readings >= LONG_READINGS ? long : short;
  const rise = trend.last - trend.first;
  return least !== null && rise >= least.rise && rise >= trend.first * least.ratio;
}

/** Kinds of growth that has an owner. */
type LeakKind =
  | 'memory-leak'
  | 'fd-leak'
  | 'socket-leak'
  | 'thread-leak'
  | 'task-leak'
  | 'gpu-memory-leak';
type LeakName<Kind extends LeakKind> = Kind extends LeakKind
  ? { readonly kind: Kind; readonly mechanism: MechanismOf<Kind> | null }
  : never;

/** What a growth with an owner is called, and what to do about it. */
export type Leak = LeakName<LeakKind> & LeakText;

interface LeakText {
  readonly code: string;
  /** As a sentence ends: `most of them of kind file`. */
  readonly owned: string;
  readonly owner: Owner | null;
  readonly extra?: Readonly<Record<string, number>>;
  readonly remedy: string;
}

/** Growth that may be load as well as a leak. */
const INCONCLUSIVE_CODE = 'TRC119';
const PERCENT = 100;

export function leakFinding(view: RecordingView, growth: Growth, leak: Leak): UnnumberedFinding {
  const { owner, owned, extra, remedy, ...name } = leak;
  return {
    ...common(view, growth),
    ...name,
    severity: 'warning',
    // A trend is an extrapolation: that nobody will ever give back what was taken cannot be seen.
    confidence: 'likely',
    summary: `${growth.what} ${growth.verb} without levelling off, ${owned}`,
    evidence: [
      trendEvidence(growth),
      ...(owner === null
        ? []
        : [
            {
              kind: 'owner',
              summary: `${owner.name}: ${Math.round(owner.share * PERCENT)} % of the growth (${owner.rise > 0 ? '+' : ''}${amount(owner.rise, growth.unit)})`,
              data: { ...owner },
            },
          ]),
    ],
    measure: { ...measure(growth), ...extra },
    remedy,
  };
}

/** Why it cannot be told whether a growth is a leak. */
type Unsure = Pick<UnnumberedOf<'growth-inconclusive'>, 'facts'> & {
  readonly why: string;
  readonly remedy: string;
};

/** A note: it grows, and whether that is a leak cannot be told from here. */
export function inconclusiveFinding(
  view: RecordingView,
  growth: Growth,
  { why, remedy, facts }: Unsure,
): UnnumberedOf<'growth-inconclusive'> {
  return {
    ...common(view, growth),
    code: INCONCLUSIVE_CODE,
    kind: 'growth-inconclusive',
    mechanism: null,
    severity: 'note',
    confidence: 'inconclusive',
    summary: `${growth.what} ${growth.verb} without levelling off; ${why}`,
    evidence: [trendEvidence(growth)],
    measure: measure(growth),
    remedy,
    ...(facts === undefined ? {} : { facts }),
  };
}

function common(view: RecordingView, { trend }: Growth): { pid: number | null; where: [] } {
  const [target, ...others] = view.start.targets;
  return {
    pid: trend.readings > 0 && others.length === 0 ? (target?.pid ?? null) : null,
    where: [],
  };
}

function trendEvidence({ unit, trend }: Growth): Finding['evidence'][0] {
  const number = (value: number): string => amount(value, unit);
  const against =
    trend.p === null
      ? 'each reading was higher than the one before'
      : `a driftless random walk with these steps climbs as steeply with p ${formatProbability(trend.p)}`;
  return {
    kind: 'trend',
    summary:
      `from ${number(trend.first)} to ${number(trend.last)} in ${formatSeconds(trend.duration)} (${trend.readings} readings), ` +
      `${number(trend.slope)} a second (95 %: ${number(trend.slopeLow)} to ${number(trend.slopeHigh)}), ` +
      `in the last third ${Math.round(trend.lastThird * PERCENT)} % of that; ${against}`,
    data: { ...trend },
  };
}

function amount(value: number, unit: Growth['unit']): string {
  return unit === 'bytes' ? formatBytes(value) : formatNumber(value);
}

function measure({ unit, trend }: Growth): Readonly<Record<string, number>> {
  const { first, last, slope, duration, readings, lastThird } = trend;
  const levels: Readonly<Record<string, number>> =
    unit === 'bytes'
      ? { start_bytes: first, end_bytes: last, growth_bytes_per_s: slope }
      : { start_count: first, end_count: last, growth_per_s: slope };
  return {
    ...levels,
    duration_s: duration,
    readings_count: readings,
    last_third_ratio: lastThird,
  };
}
