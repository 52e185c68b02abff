import { constants } from 'node:os';
import { targetsOf } from '../core/process-view.ts';
import { ATTR, EVENT, SNAPSHOT } from '../core/semconv.ts';
import type {
  Detector,
  Event,
  RecordingView,
  Severity,
  TargetInfo,
  UnnumberedFinding,
  MechanismOf,
} from '../core/types.ts';
import { formatSeconds } from '../core/units.ts';
import { numberAttribute, textAttribute } from './attributes.ts';

/**
 * A process of the run that ended: how, by its exit status, the kernel's log, or not at all where its parent took the status first. What was
 * asked to end (SIGTERM, SIGINT, SIGHUP) and what left with 0 is a note, and of the target itself nothing: that is how programs stop.
 */

const CODE = 'TRC103';

/** Sent by people and supervisors, not by faults. */
const ASKED: ReadonlySet<number> = new Set([1, 2, 15]);
/** What a program's own fault ends it with: SIGILL, SIGTRAP, SIGABRT, SIGBUS, SIGFPE, SIGSEGV, SIGSYS. */
const FAULTS: ReadonlySet<number> = new Set([4, 5, 6, 7, 8, 11, 31]);
const SIGKILL = 9;

export const processExit: Detector = {
  code: CODE,
  of: 'run',
  *detect(view) {
    const targets = targetsOf(view);
    for (const event of view.events(EVENT.targetExit)) {
      const finding = judge(event, targets, view);
      if (finding !== null) yield finding;
    }
  },
};

/** How gunicorn's master ends a worker that has not reported for its `--timeout`. */
const SIGABRT = 6;
const GUNICORN_WORKER = 'gunicorn worker';

interface End {
  readonly how: string;
  readonly mechanism: MechanismOf<'process-exit'>;
  readonly severity: Severity;
  readonly remedy: string | null;
}

function judge(
  event: Event,
  targets: readonly TargetInfo[],
  view: RecordingView,
): UnnumberedFinding | null {
  const [first] = targets;
  const pid = numberAttribute(event.attributes, ATTR.pid) ?? first?.pid ?? null;
  const target = targets.findLast((one) => one.pid === pid);
  if (target === undefined) return null;
  const isFirst = target.pid === first?.pid;
  const end = endOf(event, target.role);
  if (isFirst ? end.severity === 'note' : isOrdinary(end, target)) return null;
  const next = replacement(target, event, { targets, view });
  const role = target.role === null ? '' : ` (${target.role})`;
  const after = next === null ? '' : `; pid ${next.pid} took its place`;
  const log = textAttribute(event.attributes, ATTR.kernelLog);
  return {
    code: CODE,
    kind: 'process-exit',
    mechanism: end.mechanism,
    severity: end.severity,
    confidence: 'confirmed',
    pid: target.pid,
    summary: `pid ${target.pid}${role} ${end.how} after ${formatSeconds(event.at - view.start.startedAt)}${after}`,
    where: [],
    evidence: [
      { kind: 'exit', summary: event.body, data: { ...event.attributes } },
      ...(log === null ? [] : [{ kind: 'kernel-log', summary: `the kernel's log: ${log}` }]),
    ],
    measure: { after_s: event.at - view.start.startedAt },
    remedy: end.remedy,
  };
}

const BY_GUNICORN: End = {
  how: 'was killed by SIGABRT',
  mechanism: 'SIGABRT',
  severity: 'critical',
  remedy:
    'gunicorn ends a worker so when it has not reported for --timeout (30 s): what held it up is to be found. Its log says WORKER TIMEOUT then; else native code failed (PYTHONFAULTHANDLER=1).',
};

/** Programs that a server runs and that leave in order are not worth a word; one of its own processes is. */
function isOrdinary({ mechanism }: End, { role }: TargetInfo): boolean {
  return role === null && (mechanism === 'exited' || mechanism === 'unknown');
}

function endOf({ attributes }: Event, role: string | null): End {
  const cause = textAttribute(attributes, ATTR.exitCause);
  const signal = numberAttribute(attributes, ATTR.exitSignal);
  const code = numberAttribute(attributes, ATTR.exitCode);
  if (cause === 'cgroup-out-of-memory') {
    return {
      how: 'was killed by the kernel: the memory limit of its control group was reached',
      mechanism: 'out of memory (cgroup)',
      severity: 'critical',
      remedy:
        "Raise the container's memory limit, or find what grows: trace attach on its successor, -d 5m.",
    };
  }
  if (cause === 'out-of-memory') {
    return {
      how: 'was killed by the kernel: the machine had no memory left',
      mechanism: 'out of memory',
      severity: 'critical',
      remedy: 'The kernel took the process that held most; see which one grew.',
    };
  }
  if (signal === SIGABRT && role === GUNICORN_WORKER) return BY_GUNICORN;
  if (signal !== null) return bySignal(signal);
  if (cause === 'fault') return { ...bySignal(11), how: 'crashed' };
  if (code !== null && code > 0) {
    return {
      how: `exited with code ${code}`,
      mechanism: 'exit code',
      severity: 'warning',
      remedy: 'Its own log says why: look there for the moment of its end.',
    };
  }
  if (code === 0)
    return { how: 'exited with code 0', mechanism: 'exited', severity: 'note', remedy: null };
  return {
    how: 'ended; how is not known, its parent took the exit status at once',
    mechanism: 'unknown',
    severity: 'note',
    remedy: 'As root, or with `trace run -- …`, it is seen how a process ends.',
  };
}

function bySignal(signal: number): End {
  const name = nameOf(signal);
  const how = `was killed by ${name}`;
  if (ASKED.has(signal)) return { how, mechanism: name, severity: 'note', remedy: null };
  if (FAULTS.has(signal)) {
    return {
      how: `crashed with ${name}`,
      mechanism: name,
      severity: 'critical',
      remedy:
        'Native code failed: PYTHONFAULTHANDLER=1 (or a core dump: ulimit -c unlimited) shows where the next time.',
    };
  }
  const remedy =
    signal === SIGKILL
      ? 'Somebody sent SIGKILL: a supervisor after its time-out, an operator, or the kernel for want of memory (dmesg).'
      : null;
  return { how, mechanism: name, severity: 'warning', remedy };
}

function nameOf(signal: number): `SIG${string}` | `signal ${number}` {
  const names = Object.keys(constants.signals) as NodeJS.Signals[];
  return names.find((name) => constants.signals[name] === signal) ?? `signal ${signal}`;
}

/** A process of the same role and parent that joined after this one ended. */
function replacement(
  dead: TargetInfo,
  { at }: Event,
  { targets, view }: { targets: readonly TargetInfo[]; view: RecordingView },
): TargetInfo | null {
  if (dead.role === null) return null;
  const later = targets.filter(
    (one) =>
      one.role === dead.role && one.parent === dead.parent && one.startTicks > dead.startTicks,
  );
  const joinedAfter = (pid: number): boolean =>
    view
      .snapshots(SNAPSHOT.target)
      .some((snapshot) => snapshot.at >= at && isOf(snapshot.body, pid));
  return later.find(({ pid }) => joinedAfter(pid)) ?? null;
}

function isOf(body: unknown, pid: number): boolean {
  return typeof body === 'object' && body !== null && 'pid' in body && body.pid === pid;
}
