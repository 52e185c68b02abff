import { THROTTLE_WORDS, throttleReason, type ThrottleReason } from '../core/gpu-reasons.ts';
import { GPU_ATTR, GPU_METRIC } from '../core/semconv-gpu.ts';
import { median } from '../core/statistics.ts';
import { percentText } from '../core/text.ts';
import type {
  Detector,
  Finding,
  Ratio,
  Seconds,
  Severity,
  UnnumberedFinding,
  MechanismOf,
} from '../core/types.ts';
import { formatSeconds } from '../core/units.ts';
import { textAttribute } from './attributes.ts';
import { gpusOf, type RecordedGpu } from './gpu-readings.ts';

/**
 * TRC222 gpu-throttled: the clocks of a GPU were held down in a share of the readings, by one reason. The driver's flags decide, read once a second; its
 * counters of microseconds only add to them: on an L40S that of the power limit rose by 3.9 s in the
 * 15 s between an idle and a loaded capture, with the flag set in neither.
 */

const CODE = 'TRC222';

/** A hardware slowdown halves the clocks or worse, and is also flagged for a moment when they change (nvidia-smi's own help says so). */
const HARDWARE_SHARE: Ratio = 0.05;
/** Software takes the clocks down by a few steps, and a fan that catches up ends it within seconds. */
const HEAT_SHARE: Ratio = 0.1;
/** A GPU at full load runs at its power limit by design: worth a word is what lasts. */
const POWER_SHARE: Ratio = 0.25;
/** And worth a warning is what costs: a tenth of the highest clock. */
const CLOCK_LEFT: Ratio = 0.9;
/** Fewer readings with the flag set are a moment. */
const LEAST_READINGS = 3;

interface Kind {
  readonly mechanism: MechanismOf<'gpu-throttled'>;
  readonly share: Ratio;
  readonly remedy: string;
}

const KINDS: Readonly<Record<ThrottleReason, Kind>> = {
  sw_power_cap: {
    mechanism: 'power-cap',
    share: POWER_SHARE,
    remedy:
      'If it may draw more: nvidia-smi -pl <watts>. Else this is what the GPU gives at that power; look whether its neighbours share the budget.',
  },
  sw_thermal_slowdown: {
    mechanism: 'thermal',
    share: HEAT_SHARE,
    remedy:
      'Look at air flow, fans, dust and the temperature of the room; a lower power limit (nvidia-smi -pl) keeps the clocks steadier than heat does.',
  },
  hw_thermal_slowdown: {
    mechanism: 'thermal',
    share: HARDWARE_SHARE,
    remedy:
      'It is far too hot: look at air flow, fans, coolant and how it is seated, before it shuts down.',
  },
  hw_power_brake_slowdown: {
    mechanism: 'power-brake',
    share: HARDWARE_SHARE,
    remedy:
      'The power supply asks for it: look at the supplies, their cables and the power budget of the chassis.',
  },
  hw_slowdown: {
    mechanism: 'hw-slowdown',
    share: HARDWARE_SHARE,
    remedy:
      'Look at temperature and power: nvidia-smi -q -d PERFORMANCE says which of the two it is.',
  },
};

/** What is said in more detail by another flag that is set with it. */
const PARTS_OF_HARDWARE = ['hw_thermal_slowdown', 'hw_power_brake_slowdown'] as const;

export const gpuThrottled: Detector = {
  code: CODE,
  of: 'run',
  *detect(view) {
    for (const gpu of gpusOf(view).filter(({ parent }) => parent === null)) {
      const flags = flagsOf(gpu);
      for (const flag of flags) {
        const kind = KINDS[flag.reason];
        if (flag.set < LEAST_READINGS || flag.share < kind.share) continue;
        if (flag.reason === 'hw_slowdown' && isExplained(flags)) continue;
        yield findingOf(gpu, flag, kind);
      }
    }
  },
};

interface Flag {
  readonly reason: ThrottleReason;
  /** Readings in which it was set, and how many there were. */
  readonly set: number;
  readonly readings: number;
  readonly share: Ratio;
  readonly duration: Seconds;
  /** When it was set. */
  readonly at: ReadonlySet<Seconds>;
}

function flagsOf(gpu: RecordedGpu): readonly Flag[] {
  return gpu.all(GPU_METRIC.gpuThrottled).flatMap(({ attributes, at, value }): readonly Flag[] => {
    const reason = throttleReason(textAttribute(attributes, GPU_ATTR.reason));
    if (reason === null) return [];
    const when = new Set([...at].filter((_, i) => value[i] === 1));
    const flag = {
      reason,
      set: value.filter((one) => one === 1).length,
      readings: value.length,
      share: value.length === 0 ? 0 : value.filter((one) => one === 1).length / value.length,
      duration: (at.at(-1) ?? 0) - (at[0] ?? 0),
      at: when,
    };
    return [flag];
  });
}

function isExplained(flags: readonly Flag[]): boolean {
  return flags.some(
    ({ reason, set }) => PARTS_OF_HARDWARE.some((one) => one === reason) && set >= LEAST_READINGS,
  );
}

function findingOf(gpu: RecordedGpu, flag: Flag, kind: Kind): UnnumberedFinding {
  const { reason, set, readings, share, duration } = flag;
  const clock = clockLeft(gpu, flag);
  const cost = clock === null ? '' : `; its clock was at ${percentText(clock)} of the highest`;
  return {
    code: CODE,
    kind: 'gpu-throttled',
    mechanism: kind.mechanism,
    severity: severityOf(reason, clock),
    confidence: 'confirmed',
    pid: null,
    summary: `${gpu.label} was held down by ${THROTTLE_WORDS[reason]} ${percentText(share)} of the time${cost}`,
    where: [],
    evidence: [
      {
        kind: 'throttle',
        summary: `${reason} was set in ${set} of ${readings} readings over ${formatSeconds(duration)}${counted(gpu, reason)}`,
        data: { reason, set, readings },
      },
      ...surroundings(gpu, flag),
    ],
    measure: {
      throttled_ratio: share,
      duration_s: duration,
      readings_count: readings,
      ...(clock === null ? {} : { clock_ratio: clock }),
    },
    remedy: kind.remedy,
  };
}

function severityOf(reason: ThrottleReason, clock: Ratio | null): Severity {
  if (reason !== 'sw_power_cap') return 'warning';
  return clock !== null && clock <= CLOCK_LEFT ? 'warning' : 'note';
}

/** The median clock while it was held down, over the highest it goes to; null where one of them is not known. */
function clockLeft(gpu: RecordedGpu, { at }: Flag): Ratio | null {
  const which = { [GPU_ATTR.clock]: 'sm' };
  const clock = gpu.one(GPU_METRIC.gpuClock, which);
  const most = gpu.one(GPU_METRIC.gpuClockLimit, which)?.value.at(-1) ?? 0;
  const values = [...(clock?.value ?? [])].filter((_, i) => at.has(clock?.at[i] ?? 0));
  return values.length === 0 || most <= 0 ? null : Math.min(1, median(values) / most);
}

/** What the driver counted itself, where it does. */
function counted(gpu: RecordedGpu, reason: string): string {
  const time = gpu.one(GPU_METRIC.gpuThrottledTime, { [GPU_ATTR.reason]: reason });
  const rise = (time?.value.at(-1) ?? 0) - (time?.value[0] ?? 0);
  return rise > 0 ? `; the driver counted ${formatSeconds(rise)}` : '';
}

/** Power and temperature meanwhile. */
function surroundings(gpu: RecordedGpu, { at }: Flag): Finding['evidence'] | [] {
  const during = (series: ReturnType<RecordedGpu['one']>): number | null => {
    const values = [...(series?.value ?? [])].filter((_, i) => at.has(series?.at[i] ?? 0));
    return values.length === 0 ? null : median(values);
  };
  const power = during(gpu.one(GPU_METRIC.gpuPower));
  const limit = gpu.one(GPU_METRIC.gpuPowerLimit)?.value.at(-1);
  const heat = during(gpu.one(GPU_METRIC.gpuTemperature, { [GPU_ATTR.sensor]: 'gpu' }));
  const parts = [
    power === null
      ? null
      : `${Math.round(power)} W${limit === undefined ? '' : ` of ${Math.round(limit)} W`}`,
    heat === null ? null : `${Math.round(heat)} °C`,
  ].filter((one) => one !== null);
  return parts.length === 0
    ? []
    : [{ kind: 'gpu', summary: `meanwhile ${parts.join(' and ')}, in the median` }];
}
