import type { Inspection } from '../../../collectors/node/inspection.ts';
import type { StackSource } from '../../../collectors/sampler/stack-source.ts';
import { COLLECTOR } from '../../core/collector-name.ts';
import type { Availability, Collector, CollectorInfo, ProcessTarget } from '../../core/types.ts';
import type { Runtime } from '../../platform/runtime.ts';
import { journalFolder } from '../../platform/undo-journal.ts';
import type { AttachOptions } from './options.ts';
import type { AttachScreen } from './screen.ts';
import type { Environment } from '../command-line/command.ts';

/** What a run has to do with a Node target's inspector: use one that is open, or with `--inspect` open it and close it again. */

type Unavailable = Extract<Availability, { available: false }>;

export class NodeInspector {
  readonly #options: Pick<AttachOptions, 'inspect' | 'maxPause'>;
  readonly #environment: Environment;
  readonly #screen: Pick<AttachScreen, 'announceTouch'>;
  #inspection: Inspection | null = null;
  #collectors: readonly Collector<ProcessTarget>[] = [];
  #info: CollectorInfo | null = null;

  constructor(
    options: Pick<AttachOptions, 'inspect' | 'maxPause'>,
    environment: Environment,
    screen: Pick<AttachScreen, 'announceTouch'>,
  ) {
    this.#options = options;
    this.#environment = environment;
    this.#screen = screen;
  }

  /** Where a Node target's stacks come from. Loaded only for Node: it brings a WebSocket client. */
  async openStacks(target: ProcessTarget, runtime: Runtime): Promise<StackSource | Unavailable> {
    const { inspect, maxPause } = this.#options;
    if (inspect !== null) return this.#open(target, runtime);
    if (maxPause === 0)
      return { available: false, reason: '--max-pause 0 leaves the inspector alone', remedy: null };
    const { NodeProfiler } = await import('../../../collectors/node/profiler.ts');
    const opened = await NodeProfiler.open(
      target.pid,
      maxPause === null ? {} : { pauseBudget: maxPause },
    );
    return opened.ok ? opened.profiler : unavailable(opened);
  }

  /** Collectors that only an inspection brings. */
  get collectors(): readonly Collector<ProcessTarget>[] {
    return this.#collectors;
  }

  /** What `--inspect` came to, where it was asked for. */
  async infos(target: ProcessTarget, runtime: Runtime): Promise<readonly CollectorInfo[]> {
    if (this.#options.inspect === null) return [];
    if (this.#info !== null) return [this.#info];
    const { judgeOpening } = await import('../../../collectors/node/refusal.ts');
    const opening = judgeOpening(target, runtime, { force: false });
    const reason = opening.ok ? 'its memory may not be read' : opening.reason;
    const remedy = opening.ok ? null : opening.remedy;
    return [{ name: COLLECTOR.heap, available: false, reason: `--inspect: ${reason}`, remedy }];
  }

  /** Leaves the target as it was found; what stays and why, null when nothing does. Safe to call twice. */
  async close(): Promise<string | null> {
    const inspection = this.#inspection;
    this.#inspection = null;
    return inspection === null ? null : inspection.close();
  }

  async #open(target: ProcessTarget, runtime: Runtime): Promise<StackSource | Unavailable> {
    const { inspect, maxPause } = this.#options;
    const [{ openInspection }, { heapCollector }, { nodeHeapWatch }] = await Promise.all([
      import('../../../collectors/node/open-inspection.ts'),
      import('../../../collectors/node/heap.ts'),
      import('../../../collectors/node/heap-watch.ts'),
    ]);
    const opened = await openInspection({
      target,
      runtime,
      force: inspect === 'force',
      ...(maxPause === null ? {} : { pauseBudget: maxPause }),
      journalFolder: journalFolder(this.#environment.env),
      announce: (lines) => this.#screen.announceTouch(target.pid, lines),
    });
    if (!opened.ok) {
      const refusal = unavailable(opened);
      this.#info = { name: COLLECTOR.heap, ...refusal };
      return refusal;
    }
    this.#inspection = opened.inspection;
    this.#collectors = [
      heapCollector(opened.inspection),
      nodeHeapWatch(opened.inspection, maxPause ?? undefined),
    ];
    this.#info = { name: COLLECTOR.heap, available: true, reason: null, remedy: null };
    return opened.inspection.profiler;
  }
}

function unavailable({ reason, remedy }: { reason: string; remedy: string | null }): Unavailable {
  return { available: false, reason, remedy };
}
