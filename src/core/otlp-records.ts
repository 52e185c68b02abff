import { FINDING_KINDS, type FindingKind, mechanismOf } from './catalogue/catalogue.ts';
import { maskText } from './secrets/mask.ts';
import type {
  CollectorInfo,
  Evidence,
  Finding,
  Frame,
  Gap,
  Place,
  RunEnd,
  RunStart,
  TargetInfo,
} from './types.ts';
import { asArray, asFinite, asFrame, asInteger, asObject, asString } from './otlp-values.ts';

/**
 * The bodies of our log records back into the vocabulary. A file may say anything: each field is checked, what is
 * missing gets the neutral value, and what cannot be what it claims gives undefined.
 */

type Body = Readonly<Record<string, unknown>>;

const GAP_REASONS: readonly Gap['reason'][] = [
  'late',
  'failed',
  'dropped',
  'suspended',
  'target-gone',
];
const SEVERITIES: readonly Finding['severity'][] = ['critical', 'warning', 'note'];
const CONFIDENCES: readonly Finding['confidence'][] = ['confirmed', 'likely', 'inconclusive'];
const TRACE_ID = /^[0-9a-f]{32}$/;
/** No title that trace writes is as long. */
const TITLE_LIMIT = 4096;
/** The trace id of a run whose own cannot be read. */
export const NO_TRACE_ID: string = '0'.repeat(32);

/** A run-start body; undefined when it has no schema version or no time. */
export function toRunStart(body: unknown): RunStart | undefined {
  const start = asObject(body);
  const schemaVersion = start?.['schemaVersion'];
  const startedAt = start?.['startedAt'];
  if (start === undefined || !Number.isInteger(schemaVersion) || !isFiniteNumber(startedAt))
    return undefined;
  const traceId = asString(start['traceId']);
  return {
    schemaVersion: Number(schemaVersion),
    toolVersion: asString(start['toolVersion'], 'unknown'),
    command: asString(start['command'], 'unknown'),
    startedAt,
    traceId: TRACE_ID.test(traceId) ? traceId : NO_TRACE_ID,
    targets: objects(start['targets']).map(toTarget),
    collectors: objects(start['collectors']).map(toCollector),
    settings: toSettings(start['settings']),
  };
}

/** A run-end body; undefined when it has no time. */
export function toRunEnd(body: unknown): RunEnd | undefined {
  const end = asObject(body);
  const endedAt = end?.['endedAt'];
  if (end === undefined || !isFiniteNumber(endedAt)) return undefined;
  return {
    endedAt,
    interrupted: end['interrupted'] === true,
    reason: asString(end['reason'], 'unknown'),
    ownCpuRatio: asFinite(end['ownCpuRatio']),
    startupCpu: asFinite(end['startupCpu']),
    targetPaused: asFinite(end['targetPaused']),
    samples: asFinite(end['samples']),
    late: asFinite(end['late']),
    dropped: asFinite(end['dropped']),
    ...(asObject(end['summary']) === undefined ? {} : { summary: toSettings(end['summary']) }),
  };
}

/** A process of a run, from the body of a snapshot; undefined without a pid. */
export function toTargetInfo(body: unknown): TargetInfo | undefined {
  const target = asObject(body);
  return target === undefined || !isFiniteNumber(target['pid']) ? undefined : toTarget(target);
}

/** What such a snapshot says of what could be seen of its process. */
export function toCollectorInfos(body: unknown): readonly CollectorInfo[] {
  return objects(asObject(body)?.['collectors']).map(toCollector);
}

/** A gap body; undefined when it has no interval or an unknown reason. */
export function toGap(body: unknown): Gap | undefined {
  const gap = asObject(body);
  const from = gap?.['from'];
  const to = gap?.['to'];
  const reason = GAP_REASONS.find((known) => known === gap?.['reason']);
  if (gap === undefined || reason === undefined || !isFiniteNumber(from) || !isFiniteNumber(to))
    return undefined;
  const collector = asString(gap['collector'], 'unknown');
  const pid = gap['pid'];
  return {
    kind: 'gap',
    from,
    to,
    collector,
    reason,
    detail: asString(gap['detail']),
    ...(isFiniteNumber(pid) ? { pid } : {}),
  };
}

/** The frames of a stack body, with its id; undefined without an id. */
export function toStack(body: unknown): { id: string; frames: readonly Frame[] } | undefined {
  const stack = asObject(body);
  const id = asString(stack?.['id']);
  if (stack === undefined || id === '') return undefined;
  return { id, frames: toFrames(stack['frames']) };
}

/** Where one thread was. */
export interface ThreadStack {
  readonly tid: number;
  /** `running`, or what it waited for (`lock`, `sleep`, `message`, `child`, `other`); null where that was not read. */
  readonly wait: string | null;
  /** Innermost first. */
  readonly frames: readonly Frame[];
}

/** Where the threads of one process were, from the body of a snapshot; undefined without a pid. */
export function toThreadStacks(
  body: unknown,
): { pid: number; threads: readonly ThreadStack[] } | undefined {
  const snapshot = asObject(body);
  const pid = snapshot?.['pid'];
  if (snapshot === undefined || !isFiniteNumber(pid)) return undefined;
  const threads = objects(snapshot['threads']).map((thread) => ({
    tid: asFinite(thread['tid']),
    wait: stringOrNull(thread['wait']),
    frames: toFrames(thread['frames']),
  }));
  return { pid, threads };
}

function toFrames(value: unknown): readonly Frame[] {
  return asArray(value).flatMap((frame) => asFrame(frame) ?? []);
}

/**
 * A finding body; undefined when it lacks what a finding rests on: code, kind, severity and some
 * evidence. Of a newer version, a kind is kept and shown as text, never acted on; a mechanism that
 * this version does not know becomes null. All else of such a finding stays.
 */
export function toFinding(body: unknown): Finding | undefined {
  const finding = asObject(body);
  if (finding === undefined) return undefined;
  const severity = SEVERITIES.find((known) => known === finding['severity']);
  const confidence = CONFIDENCES.find((known) => known === finding['confidence']);
  const [first, ...rest] = objects(finding['evidence']).map(toEvidence);
  const [id, code, kind] = ['id', 'code', 'kind'].map((key) => asString(finding[key]));
  if (!id || !code || !kind || !severity || !confidence || !first) return undefined;
  const known = FINDING_KINDS.find((one) => one === kind);
  const mechanism = stringOrNull(finding['mechanism']);
  const decoded = {
    id,
    code,
    kind: kind as FindingKind,
    mechanism: known === undefined ? null : mechanismOf(known, mechanism),
    severity,
    confidence,
    pid: asInteger(finding['pid']),
    ...(Array.isArray(finding['pids'])
      ? { pids: asArray(finding['pids']).filter(isFiniteNumber) }
      : {}),
    summary: asString(finding['summary']),
    where: objects(finding['where']).map(toPlace),
    evidence: [first, ...rest] as const,
    measure: Object.fromEntries(
      Object.entries(asObject(finding['measure']) ?? {}).filter(
        (entry): entry is [string, number] => typeof entry[1] === 'number',
      ),
    ),
    remedy: stringOrNull(finding['remedy']),
    ...toBecause(finding['because']),
  };
  return decoded as Finding;
}

function toBecause(body: unknown): Pick<Finding, 'because'> {
  const because = asObject(body);
  const finding = asString(because?.['finding']);
  return finding === '' ? {} : { because: { finding, why: asString(because?.['why']) } };
}

function toEvidence(evidence: Body): Evidence {
  const data = asObject(evidence['data']);
  return {
    kind: asString(evidence['kind'], 'unknown'),
    summary: asString(evidence['summary']),
    ...(data === undefined ? {} : { data }),
  };
}

function toPlace(place: Body): Place {
  return {
    function: asString(place['function'], '?'),
    file: asString(place['file'], '?'),
    line: asInteger(place['line']),
    module: stringOrNull(place['module']),
    thread: stringOrNull(place['thread']),
    share: asFinite(place['share']),
  };
}

function toTarget(target: Body): TargetInfo {
  return {
    pid: asFinite(target['pid']),
    parent: asInteger(target['parent']),
    startTicks: asFinite(target['startTicks']),
    runtime: asString(target['runtime'], 'unknown'),
    runtimeVersion: stringOrNull(target['runtimeVersion']),
    // An older trace may have let more of a command line pass.
    title: maskText(asString(target['title']).slice(0, TITLE_LIMIT)),
    role: stringOrNull(target['role']),
    ...(isFiniteNumber(target['namespacePid']) ? { namespacePid: target['namespacePid'] } : {}),
    ...(typeof target['container'] === 'string' ? { container: target['container'] } : {}),
  };
}

function toCollector(collector: Body): CollectorInfo {
  return {
    name: asString(collector['name'], 'unknown'),
    available: collector['available'] === true,
    reason: stringOrNull(collector['reason']),
    remedy: stringOrNull(collector['remedy']),
    ...(isFiniteNumber(collector['pid']) ? { pid: collector['pid'] } : {}),
  };
}

function toSettings(value: unknown): RunStart['settings'] {
  return Object.fromEntries(
    Object.entries(asObject(value) ?? {}).filter(
      (entry): entry is [string, string | number | boolean] =>
        ['string', 'number', 'boolean'].includes(typeof entry[1]),
    ),
  );
}

function objects(value: unknown): readonly Body[] {
  return asArray(value)
    .map(asObject)
    .filter((item) => item !== undefined);
}

function isFiniteNumber(value: unknown): value is number {
  return typeof value === 'number' && Number.isFinite(value);
}

function stringOrNull(value: unknown): string | null {
  return typeof value === 'string' ? value : null;
}
