import { COLLECTOR } from '../../core/collector-name.ts';
import { newTraceId } from '../../core/ids.ts';
import type { LoadResult } from '../../core/load-types.ts';
import type { CollectorInfo, RunEnd, RunStart, Seconds } from '../../core/types.ts';
import { loadSummary } from '../../load/observe/summary.ts';
import type { LoadPlan } from '../../load/plan.ts';
import { describeHost } from '../../platform/host.ts';
import { RECORDING_SCHEMA_VERSION } from '../../recording/format.ts';
import { DEFAULT_LAG_THRESHOLD } from '../attach/options.ts';
import type { Beside } from './beside.ts';
import type { LoadSettings } from './settings.ts';
import { toolVersion } from '../version.ts';
import type { Watched } from '../watching/watch.ts';

/** What the recording of a load run says of it at its beginning and at its end. */

/** What the default name of the recording's folder ends with. */
export function folderName({ endpoint }: LoadPlan): string {
  return endpoint.address.kind === 'unix' ? endpoint.address.path : endpoint.authority;
}

/** What is known of a run before it starts. */
export function loadRunStart(
  {
    plan,
    settings,
    beside,
  }: { readonly plan: LoadPlan; readonly settings: LoadSettings; readonly beside: Beside },
  startedAt: Seconds,
): RunStart {
  const host = describeHost();
  const engine: CollectorInfo = {
    name: COLLECTOR.load,
    available: true,
    reason: null,
    remedy: null,
  };
  return {
    schemaVersion: RECORDING_SCHEMA_VERSION,
    toolVersion: toolVersion(),
    command: 'load',
    startedAt,
    traceId: plan.trace?.traceId ?? newTraceId(),
    targets: beside.targets,
    collectors: [engine, ...beside.infos],
    settings: {
      gen_ai_profile: settings.genaiProfile,
      url: plan.endpoint.url,
      api: plan.endpoint.api,
      model: plan.body.model,
      seed: plan.seed,
      workers: plan.workers,
      drain_s: plan.drain,
      propagate: plan.trace !== null,
      run_id: plan.runId,
      ...(settings.attach === null ? {} : { lag_threshold_s: DEFAULT_LAG_THRESHOLD }),
      host_kernel: host.kernel,
      host_architecture: host.architecture,
      host_cores: host.cores,
      host_memory_bytes: host.memory,
    },
  };
}

/** What only its end knows. */
export function loadRunEnd(
  result: LoadResult,
  context: { watched: Watched; beside: Beside; startupCpu: Seconds },
): RunEnd {
  const { watched, beside, startupCpu } = context;
  const { samples = 0, late = 0, dropped = 0 } = beside.sampler?.statistics ?? {};
  return {
    endedAt: watched.to,
    interrupted: result.interrupted,
    reason: result.interrupted ? 'interrupted' : 'finished',
    ownCpuRatio: watched.ownCpu,
    startupCpu,
    targetPaused: beside.sampler?.targetPaused ?? 0,
    samples,
    late,
    dropped,
    summary: loadSummary(result),
  };
}
