import { findOpenInspector } from '../../../collectors/node/inspector.ts';
import { judgeOpening } from '../../../collectors/node/refusal.ts';
import type { SamplerPlan } from '../../../collectors/sampler/messages.ts';
import { openNodeAdapter } from '../../../collectors/sampler/node-adapter.ts';
import { openPythonAdapter } from '../../../collectors/sampler/python-adapter.ts';
import { takeAllSteps } from '../../../collectors/sampler/steps.ts';
import { type Check, passed } from '../../core/check.ts';
import { printable } from '../../core/text.ts';
import type { Availability } from '../../core/types.ts';
import { judgeAccess } from '../../platform/permission.ts';
import { readStat } from '../../platform/proc.ts';
import { detectRuntime, type Runtime } from '../../platform/runtime.ts';
import { findTarget, type FoundTarget } from '../../platform/target.ts';
import { DEFAULT_LAG_THRESHOLD } from '../attach/options.ts';
import { limitChecks } from './machine.ts';

/** Everything that attach would be able to see of a process, and why not the rest. Changes nothing in it; throws when it is not there. */
export async function targetChecks(pid: number): Promise<readonly Check[]> {
  const found = findTarget({ pid });
  const access = judgeAccess(found.target);
  const runtime = detectRuntime(pid);
  return [
    processCheck(found),
    tracerCheck(found),
    availabilityCheck('target-stats', access.stats, 'CPU, memory, threads and waits for a core'),
    availabilityCheck('target-details', access.details, 'its program, I/O and descriptors'),
    availabilityCheck('target-syscall', access.syscall, 'what its threads wait in'),
    availabilityCheck('target-memory', access.memory, 'its event loop and, in Python, stacks'),
    runtimeCheck(runtime, access.details),
    ...(access.memory.available ? await loopChecks(found, runtime) : [blindLoop(access.memory)]),
    ...limitChecks('target-', pid),
  ];
}

function processCheck(found: FoundTarget): Check {
  const where = found.container === null ? '' : `, in container ${found.container}`;
  const inner = found.namespacePid === null ? '' : ` as pid ${found.namespacePid}`;
  const detail = `${found.title}, of ${found.user ?? `uid ${found.uid}`}${where}${inner}`;
  if (found.state !== 'T' && found.state !== 't') return passed('target', detail);
  return {
    name: 'target',
    status: 'limited',
    detail: `${detail}; it is stopped: nothing happens in it`,
    remedy: `kill -CONT ${found.target.pid}`,
  };
}

function tracerCheck({ tracer }: FoundTarget): Check {
  if (tracer === 0) return passed('target-traced', 'nobody traces it');
  const name = printable(readStat(tracer)?.comm ?? 'unknown', 16);
  return {
    name: 'target-traced',
    status: 'limited',
    detail: `it is traced by ${tracer} (${name}): reading works, but stops made there show as blocks`,
    remedy: `detach or end ${name}, pid ${tracer}`,
  };
}

function availabilityCheck(name: string, access: Availability, what: string): Check {
  if (access.available) return passed(name, `${what} can be read`);
  return {
    name,
    status: 'missing',
    detail: `${what} cannot be read: ${access.reason}`,
    remedy: access.remedy,
  };
}

function runtimeCheck(runtime: Runtime, details: Availability): Check {
  const { name, version, variant, reason, evidence } = runtime;
  if (name === 'unknown')
    return {
      name: 'target-runtime',
      status: 'missing',
      detail: `cannot be told: ${reason ?? 'for an unknown reason'}`,
      remedy: details.available ? null : details.remedy,
    };
  const called = [name, version ?? '', variant ?? ''].filter(Boolean).join(' ');
  return passed('target-runtime', `${called} (${evidence.join('; ')})`);
}

function blindLoop(memory: Extract<Availability, { available: false }>): Check {
  return {
    name: 'target-loop',
    status: 'missing',
    detail: 'its event loop and stacks cannot be read without its memory',
    remedy: memory.remedy,
  };
}

async function loopChecks({ target }: FoundTarget, runtime: Runtime): Promise<readonly Check[]> {
  if (runtime.name !== 'python' && runtime.name !== 'node') {
    return [
      {
        name: 'target-loop',
        status: 'missing',
        detail: `${runtime.name} has no event loop that can be read: CPU, memory, threads and waits are what is seen`,
        remedy: null,
      },
    ];
  }
  const open = runtime.name === 'python' ? openPythonAdapter : openNodeAdapter;
  const opened = takeAllSteps(open(planFor(target, runtime.name)));
  const stacks = await stackCheck(target, runtime, opened.ok ? null : opened);
  if (!opened.ok) {
    const { reason, remedy } = opened;
    return [{ name: 'target-loop', status: 'missing', detail: reason, remedy }, stacks];
  }
  const { adapter } = opened;
  try {
    const loops = adapter.discover(0).map(({ thread }) => thread);
    const kinds = loops.map(({ kind, name, tid }) => `${kind} in thread ${name} (${tid})`);
    const none = {
      name: 'target-loop',
      status: 'limited',
      detail: `${adapter.missing}; attach goes on looking while it watches`,
      remedy: null,
    } as const;
    return [kinds.length === 0 ? none : passed('target-loop', kinds.join(', ')), stacks];
  } finally {
    adapter.close();
  }
}

/** As attach opens it. */
function planFor(
  { pid, startTicks }: FoundTarget['target'],
  runtime: SamplerPlan['runtime'],
): SamplerPlan {
  return { pid, startTicks, runtime, threshold: DEFAULT_LAG_THRESHOLD, raw: false };
}

async function stackCheck(
  target: FoundTarget['target'],
  runtime: Runtime,
  refusal: { readonly reason: string; readonly remedy: string | null } | null,
): Promise<Check> {
  if (runtime.name === 'python') {
    if (refusal === null) return passed('target-stacks', 'Python frames, read from memory');
    return {
      name: 'target-stacks',
      status: 'missing',
      detail: refusal.reason,
      remedy: refusal.remedy,
    };
  }
  const result = await findOpenInspector(target.pid);
  if (result.ok) {
    const { port, version } = result.inspector;
    return passed(
      'target-inspector',
      `open on its port ${port} (Node ${version}): stacks by V8's profiler`,
    );
  }
  // What --inspect would decide; nothing is opened here.
  const opening = judgeOpening(target, runtime, { force: false });
  if (opening.ok) {
    return {
      name: 'target-inspector',
      status: 'limited',
      detail: `no stacks: ${result.reason}; --inspect can open it for a run`,
      remedy: `trace attach ${target.pid} --inspect`,
    };
  }
  return {
    name: 'target-inspector',
    status: 'missing',
    detail: `no stacks: ${result.reason}, and --inspect would not open it: ${opening.reason}`,
    remedy: opening.remedy,
  };
}
