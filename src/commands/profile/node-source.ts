import type { CpuProfile } from '../../../collectors/node/cpu-profile.ts';
import type { Inspection } from '../../../collectors/node/inspection.ts';
import type { NodeProfiler } from '../../../collectors/node/profiler.ts';
import type { SeenRun } from '../../../collectors/sampler/profile/python-profiler.ts';
import type { ProcessTarget, Seconds } from '../../core/types.ts';
import type { Runtime } from '../../platform/runtime.ts';
import { journalFolder } from '../../platform/undo-journal.ts';
import type { Environment } from '../command-line/command.ts';
import type { ProfileOptions } from './options.ts';

/** A Node process's main thread, by V8's own profiler through an inspector that is open, or that `--inspect` opens. */

export type NodeOpened =
  | { readonly ok: true; readonly source: NodeSource }
  | { readonly ok: false; readonly reason: string; readonly remedy: string | null };

export interface NodeRequest {
  readonly target: ProcessTarget;
  readonly runtime: Runtime;
  readonly options: Pick<ProfileOptions, 'mode' | 'rate' | 'inspect' | 'maxPause' | 'quiet'>;
  readonly environment: Environment;
  readonly take: (run: SeenRun) => void;
}

/** Opens the inspector where that was asked for, or uses an open one, and starts V8's profiler. Never throws on account of the target. */
export async function openNodeSource(request: NodeRequest): Promise<NodeOpened> {
  const { target, options, environment } = request;
  const { inspect, maxPause } = options;
  const interval = 1 / options.rate;
  const pause = maxPause === null ? {} : { pauseBudget: maxPause };
  if (inspect === null) {
    const { NodeProfiler: Profiler } = await import('../../../collectors/node/profiler.ts');
    const opened = await Profiler.open(target.pid, { ...pause, interval });
    return opened.ok
      ? { ok: true, source: new NodeSource(request, opened.profiler, null) }
      : { ok: false, reason: opened.reason, remedy: opened.remedy };
  }
  const { openInspection } = await import('../../../collectors/node/open-inspection.ts');
  const opened = await openInspection({
    target,
    runtime: request.runtime,
    force: inspect === 'force',
    ...pause,
    interval,
    journalFolder: journalFolder(environment.env),
    announce: (lines) => {
      if (options.quiet) return;
      environment.stderr.write(`--inspect changes pid ${target.pid}. In this order:\n`);
      for (const line of lines) environment.stderr.write(`  ${line}\n`);
    },
  });
  return opened.ok
    ? { ok: true, source: new NodeSource(request, opened.inspection.profiler, opened.inspection) }
    : { ok: false, reason: opened.reason, remedy: opened.remedy };
}

export class NodeSource {
  readonly #pid: number;
  readonly #profiler: NodeProfiler;
  readonly #inspection: Inspection | null;
  readonly #takesIdle: boolean;
  readonly #take: (run: SeenRun) => void;
  #samples = 0;
  #closed = false;

  constructor(
    { target, options, take }: NodeRequest,
    profiler: NodeProfiler,
    inspection: Inspection | null,
  ) {
    this.#pid = target.pid;
    this.#profiler = profiler;
    this.#inspection = inspection;
    this.#takesIdle = options.mode === 'wall';
    this.#take = take;
    profiler.onWindow = (window) => this.#takeWindow(window);
  }

  get samples(): number {
    return this.#samples;
  }

  /** How long the target was held by us, at most. */
  get held(): Seconds {
    return this.#profiler.held;
  }

  /** Takes the last window and leaves; what went wrong or stays, null when nothing does. Safe to call twice. */
  async close(): Promise<string | null> {
    if (this.#closed) return null;
    this.#closed = true;
    const { failure } = this.#profiler;
    if (this.#inspection === null) {
      await this.#profiler.close();
      return failure;
    }
    return (await this.#inspection.close()) ?? failure;
  }

  #takeWindow(window: CpuProfile): void {
    for (const { frames, isIdle, from, to, count } of window.stretches()) {
      this.#samples += count;
      if (isIdle && !this.#takesIdle) continue;
      const pid = this.#pid;
      this.#take({ pid, tid: pid, frames, from, to, count, weight: to - from });
    }
  }
}
