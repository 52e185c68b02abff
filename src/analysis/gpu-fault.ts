import { GPU_ATTR, GPU_EVENT, GPU_METRIC } from '../core/semconv-gpu.ts';
import { mechanismOf } from '../core/catalogue/catalogue.ts';
import { printable } from '../core/text.ts';
import type {
  Confidence,
  Detector,
  Event,
  RecordingView,
  Severity,
  UnnumberedFinding,
  MechanismOf,
} from '../core/types.ts';
import { numberAttribute, textAttribute } from './attributes.ts';
import { gpusOf, type RecordedGpu } from './gpu-readings.ts';
import { XIDS } from './gpu-xids.ts';

/**
 * TRC223 gpu-fault: the driver says that a GPU is lost, counts errors that could not be corrected, or waits for a repair. Nothing is concluded from
 * numbers here: each is what the driver itself calls an error.
 */

const CODE = 'TRC223';

export const gpuFault: Detector = {
  code: CODE,
  of: 'run',
  *detect(view) {
    const gpus = gpusOf(view);
    for (const event of view.events(GPU_EVENT.fault)) yield eventFinding(event, gpus, view);
    for (const gpu of gpus.filter(({ parent }) => parent === null)) {
      const errors = errorFinding(gpu);
      if (errors !== null) yield errors;
      yield* repairFindings(gpu);
    }
  },
};

interface Verdict {
  readonly mechanism: MechanismOf<'gpu-fault'>;
  readonly severity: Severity;
  readonly confidence: Confidence;
  readonly says: string;
  readonly remedy: string;
}

const RESET = 'Drain it and reset it (nvidia-smi --gpu-reset -i <index>), or reboot.';
const FAULTS: Readonly<Record<string, Verdict>> = {
  lost: {
    mechanism: 'lost',
    severity: 'critical',
    confidence: 'confirmed',
    says: 'is lost: it no longer answers on the bus',
    remedy:
      'Reboot the machine. If it comes back: look at power, cooling and seating, and at the kernel’s log for XID 79.',
  },
  'no-handle': {
    mechanism: 'no-handle',
    severity: 'critical',
    confidence: 'confirmed',
    says: 'cannot be reached by the driver',
    remedy: 'Look at the kernel’s log (dmesg | grep -i -e nvrm -e xid); it often takes a reboot.',
  },
  'reset-required': {
    mechanism: 'reset-required',
    severity: 'critical',
    confidence: 'confirmed',
    says: 'needs a reset before it works again',
    remedy: RESET,
  },
  driver: {
    mechanism: 'driver',
    severity: 'warning',
    confidence: 'likely',
    says: 'cannot be asked: the driver does not answer nvidia-smi any more',
    remedy:
      'Look whether the driver was updated while it was loaded (a reboot mends that), or whether the container lost its devices (systemctl daemon-reload does that: restart it).',
  },
};

function eventFinding(
  event: Event,
  gpus: readonly RecordedGpu[],
  view: RecordingView,
): UnnumberedFinding {
  const { attributes } = event;
  const xid = numberAttribute(attributes, GPU_ATTR.xid);
  const fault = textAttribute(attributes, GPU_ATTR.fault) ?? '';
  const verdict = xid === null ? (FAULTS[fault] ?? FAULTS['no-handle']) : xidVerdict(xid);
  const { mechanism, severity, confidence, says, remedy } = verdict ?? xidVerdict(0);
  const id = textAttribute(attributes, GPU_ATTR.id);
  const bus = textAttribute(attributes, GPU_ATTR.busId);
  const gpu = gpus.find((one) => one.id === id);
  // A GPU that is there and is not among those of the target.
  const isForeign = id !== null && gpus.length > 0 && gpu === undefined;
  const label = gpu?.label ?? (bus === null ? 'a GPU' : `the GPU at ${printable(bus, 20)}`);
  const pid = Number(/\bpid=(\d{1,9})\b/.exec(event.body)?.[1] ?? Number.NaN);
  return {
    code: CODE,
    kind: 'gpu-fault',
    mechanism,
    severity: isForeign ? 'note' : severity,
    confidence,
    pid: view.start.targets.some((target) => target.pid === pid) ? pid : null,
    summary: `${label} ${says}${isForeign ? '; it is not one of the target’s' : ''}`,
    where: [],
    evidence: [
      {
        kind: 'driver-message',
        summary: printable(event.body, 300),
        data: { at: event.at, fault, ...(xid === null ? {} : { xid }) },
      },
    ],
    measure: xid === null ? {} : { xid },
    remedy,
  };
}

function xidVerdict(xid: number): Verdict {
  const known = XIDS[xid];
  const what = known?.means ?? 'an error that the driver reported';
  return {
    mechanism: `xid-${xid}`,
    severity: known?.severity ?? 'warning',
    confidence: 'confirmed',
    says: `had XID ${xid}: ${what}`,
    remedy: known?.remedy ?? 'NVIDIA’s list of XID errors says what it means and what to do.',
  };
}

/** Errors are counted from the loading of the driver on: they matter more when they come now. */
function errorFinding(gpu: RecordedGpu): UnnumberedFinding | null {
  const series = gpu.one(GPU_METRIC.gpuErrors, { [GPU_ATTR.errorType]: 'ecc.uncorrected' });
  const [first = 0, last = 0] = [series?.value[0], series?.value.at(-1)];
  if (last <= 0) return null;
  // Fewer than at first: the counter was reset, and what it has now came since.
  const fresh = last >= first ? last - first : last;
  const count = (n: number): string => `${n} ${n === 1 ? 'error' : 'errors'}`;
  return {
    code: CODE,
    kind: 'gpu-fault',
    mechanism: 'ecc-uncorrected',
    severity: fresh > 0 ? 'critical' : 'warning',
    confidence: 'confirmed',
    pid: null,
    summary:
      fresh > 0
        ? `${gpu.label} had ${count(fresh)} of memory that ECC could not correct, during the run`
        : `${gpu.label} has had ${count(last)} of memory that ECC could not correct since its driver was loaded, none during the run`,
    where: [],
    evidence: [
      {
        kind: 'ecc',
        summary: `ecc.errors.uncorrected.volatile.total from ${first} to ${last}`,
        data: { first, last },
      },
    ],
    measure: { errors_count: last, new_errors_count: fresh },
    remedy: `What used that memory has wrong data or was ended. ${RESET} If they come back, have it replaced.`,
  };
}

const REPAIRS: Readonly<
  Record<string, { readonly severity: Severity; readonly says: string; readonly remedy: string }>
> = {
  'remapped_rows.failure': {
    severity: 'critical',
    says: 'could not replace a bad row of its memory',
    remedy: 'Have it replaced: a failed row remapping is a reason for return (RMA).',
  },
  'remapped_rows.pending': {
    severity: 'warning',
    says: 'waits for a reset to replace a bad row of its memory',
    remedy: RESET,
  },
  'retired_pages.pending': {
    severity: 'warning',
    says: 'waits for a reset to retire bad pages of its memory',
    remedy: RESET,
  },
  'sram.threshold_exceeded': {
    severity: 'critical',
    says: 'has had more uncorrectable errors in its SRAM than it may have',
    remedy: 'Have it replaced: the threshold is a reason for return (RMA).',
  },
};

function* repairFindings(gpu: RecordedGpu): Iterable<UnnumberedFinding> {
  for (const { attributes, value } of gpu.all(GPU_METRIC.gpuRepair)) {
    if (value.at(-1) !== 1) continue;
    const name = textAttribute(attributes, GPU_ATTR.repair) ?? '';
    const action = /^recovery\.(\w{1,40})$/.exec(name)?.[1]?.replaceAll('_', ' ') ?? null;
    const known = REPAIRS[name] ?? {
      severity: /^(?:gpu )?(?:reset|reboot)$/.test(action ?? '') ? 'critical' : 'warning',
      says: `asks for an action of recovery: ${printable(action ?? name, 40)}`,
      remedy: RESET,
    };
    yield {
      code: CODE,
      kind: 'gpu-fault',
      mechanism: mechanismOf('gpu-fault', printable(name, 60)),
      severity: known.severity,
      confidence: 'confirmed',
      pid: null,
      summary: `${gpu.label} ${known.says}`,
      where: [],
      evidence: [{ kind: 'driver', summary: `nvidia-smi: ${printable(name, 60)} is set` }],
      measure: {},
      remedy: known.remedy,
    };
  }
}
