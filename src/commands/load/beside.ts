import type { CollectorInfo, Metric, TargetInfo } from '../../core/types.ts';
import { printable } from '../../core/text.ts';
import { descendantsOf, rolesOf } from '../../platform/process-tree.ts';
import { roleText } from '../../platform/roles.ts';
import { targetInfo } from '../../platform/target.ts';
import { openGpus } from '../attach/gpu.ts';
import { NodeInspector } from '../attach/inspect.ts';
import { DEFAULT_LAG_THRESHOLD } from '../attach/options.ts';
import { type AttachPlan, probeTarget, workersInfo } from '../attach/probe.ts';
import type { Environment } from '../command-line/command.ts';
import type { LoadRunScreen, LoadSettings } from './settings.ts';
import { type Source, sourceOf } from '../watching/watch.ts';

/** What is watched beside a load run, on its clock and into its recording: the server's process, and its page for Prometheus. */
export interface Beside {
  readonly sources: readonly Source[];
  readonly targets: readonly TargetInfo[];
  readonly infos: readonly CollectorInfo[];
  /** What the server's page has, beyond semconv.ts. */
  readonly metrics: readonly Metric[];
  /** The inference engine, where the page tells; null where nothing does. */
  readonly engine: string | null;
  /** What was seen of the process; null without one. */
  readonly sampler: AttachPlan['sampler'];
  /** Leaves the process as it was found. Safe to call twice. */
  close(): Promise<void>;
}

interface Context {
  readonly environment: Environment;
  readonly screen: LoadRunScreen;
}

/** Finds and probes what is to be watched. Throws a TraceError when the process is not there. */
export async function openBeside(settings: LoadSettings, context: Context): Promise<Beside> {
  const page =
    settings.metricsUrl === null && settings.attach === null
      ? null
      : await openPage(settings, context);
  const process = settings.attach === null ? null : await openProcess(settings, context);
  const gpus = await openGpuSource(settings, process?.targets ?? [], context);
  return {
    sources: [...(process?.sources ?? []), ...(page?.sources ?? []), ...gpus.sources],
    targets: process?.targets ?? [],
    infos: [...(process?.infos ?? []), ...(page?.infos ?? []), ...gpus.infos],
    metrics: page?.metrics ?? [],
    engine: page?.engine ?? null,
    sampler: process?.sampler ?? null,
    close: async () => process?.close(),
  };
}

async function openProcess(
  settings: LoadSettings,
  { environment, screen }: Context,
): Promise<Omit<Beside, 'metrics' | 'engine'>> {
  const pid = settings.attach?.pid ?? 0;
  const options = {
    target: { by: 'pid', pid },
    lagThreshold: DEFAULT_LAG_THRESHOLD,
    recording: settings.recording,
    requireStacks: false,
    inspect: null,
    maxPause: null,
  } as const;
  const inspector = new NodeInspector(options, environment, { announceTouch: () => {} });
  const plan = await probeTarget(options, inspector);
  const infos = [...plan.infos, ...workersInfo(plan.found.target.pid)];
  for (const message of plan.messages) screen.note(message);
  if (plan.messages.length === 0) sayMissing(infos, screen);
  return {
    sources: plan.collectors.map((collector) => sourceOf(collector, plan.found.target)),
    targets: [{ ...targetInfo(plan.found, plan.runtime), role: roleIn(plan.found.target.pid) }],
    infos,
    sampler: plan.sampler,
    async close() {
      await plan.sampler?.close();
      const left = await inspector.close();
      if (left !== null) screen.problem(left);
    },
  };
}

/** What the process is to its server, by its children too: a master is one that forked its like. */
function roleIn(pid: number): string | null {
  return roleText(rolesOf(pid, descendantsOf(pid)).get(pid) ?? null);
}

/** GPUs of the process that is watched; all there are where none is, and somebody asks for them. */
async function openGpuSource(
  { attach, gpu }: LoadSettings,
  targets: readonly TargetInfo[],
  { environment, screen }: Context,
): Promise<Pick<Beside, 'sources' | 'infos'>> {
  const { collector, infos } = await openGpus({
    wanted: gpu,
    environment,
    roots: () => (attach === null ? [] : [attach.pid]),
    roles: targets.map(({ role }) => role),
  });
  sayMissing(infos, screen);
  const nobody = { kind: 'process', pid: 0, startTicks: 0 } as const;
  return { sources: collector === null ? [] : [sourceOf(collector, nobody)], infos };
}

/** The page that was named, or that of the process that is watched. The first reading is made now: it is the one before the run. */
async function openPage(
  { metricsUrl: url, metricsInterval: every, attach }: LoadSettings,
  { screen }: Context,
): Promise<Pick<Beside, 'sources' | 'infos' | 'metrics' | 'engine'>> {
  const { openServerPages } = await import('../server/pages.ts');
  const pids = attach === null ? [] : [attach.pid];
  const pages = await openServerPages({ url, find: 'known', every }, { pids, mayBecome: false });
  for (const line of pages.said) screen.note(`server-metrics: asked ${line}`);
  sayMissing(pages.infos, screen);
  return pages;
}

function sayMissing(infos: readonly CollectorInfo[], screen: LoadRunScreen): void {
  for (const { name, available, reason } of infos) {
    if (!available) screen.note(`${name}: not seen: ${printable(reason ?? '', 400)}`);
  }
}
