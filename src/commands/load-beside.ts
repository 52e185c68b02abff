import type { CollectorInfo, TargetInfo } from '../core/types.ts';
import { targetInfo } from '../platform/target.ts';
import { NodeInspector } from './attach-inspect.ts';
import { DEFAULT_LAG_THRESHOLD } from './attach-options.ts';
import { type AttachPlan, probeTarget } from './attach-probe.ts';
import type { Environment } from './command.ts';
import type { LoadRunScreen, LoadSettings } from './load-settings.ts';
import { type Source, sourceOf } from './watch.ts';

/** What is watched beside a load run, on its clock and into its recording: the server's process. */
export interface Beside {
  readonly sources: readonly Source[];
  readonly targets: readonly TargetInfo[];
  readonly infos: readonly CollectorInfo[];
  /** What was seen of the process; null without one. */
  readonly sampler: AttachPlan['sampler'];
  /** Leaves the process as it was found. Safe to call twice. */
  close(): Promise<void>;
}

/** Finds and probes what is to be watched. Throws a TraceError when the process is not there. */
export async function openBeside(
  settings: LoadSettings,
  { environment, screen }: { readonly environment: Environment; readonly screen: LoadRunScreen },
): Promise<Beside> {
  if (settings.attach === null) {
    return { sources: [], targets: [], infos: [], sampler: null, close: () => Promise.resolve() };
  }
  const options = {
    target: { by: 'pid', pid: settings.attach.pid },
    lagThreshold: DEFAULT_LAG_THRESHOLD,
    recording: settings.recording,
    requireStacks: false,
    inspect: null,
    maxPause: null,
  } as const;
  const touch = { announceTouch: () => {} };
  const inspector = new NodeInspector(options, environment, touch);
  const plan = await probeTarget(options, inspector);
  for (const message of plan.messages) screen.note(message);
  return {
    sources: plan.collectors.map((collector) => sourceOf(collector, plan.found.target)),
    targets: [targetInfo(plan.found, plan.runtime)],
    infos: plan.infos,
    sampler: plan.sampler,
    async close() {
      await plan.sampler?.close();
      const left = await inspector.close();
      if (left !== null) screen.problem(left);
    },
  };
}
