import { mkdtempSync, readdirSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { journalFolder } from '../../src/platform/undo-journal.ts';
import { type Inspected, isBeingProfiled, startInspected } from '../collectors/node/inspected.ts';
import { type CliRun, type Ended, parseReport, startCli } from './cli.ts';

/** `trace attach --inspect` on targets that are stopped, with a state directory of its own, when `close` is called. */
export class Inspecting {
  /** Where the journals of these runs are. */
  readonly state: string = mkdtempSync(join(tmpdir(), 'tracewright-inspect-'));
  readonly env: Readonly<Record<string, string>> = { XDG_STATE_HOME: this.state };
  readonly #stops: (() => Promise<void>)[] = [];

  async target(...args: Parameters<typeof startInspected>): Promise<Inspected> {
    return this.keep(await startInspected(...args));
  }

  /** Has something stopped at the end. */
  keep<T extends { stop(): Promise<void> }>(target: T): T {
    this.#stops.push(() => target.stop());
    return target;
  }

  attach(pid: number, ...more: string[]): CliRun {
    return startCli(attachArgs(pid, ...more), { env: this.env });
  }

  /** The journals there are of a process. */
  journals(pid: number): string[] {
    try {
      return readdirSync(journalFolder(this.env)).filter((name) => name.startsWith(`${pid}-`));
    } catch {
      return [];
    }
  }

  async close(): Promise<void> {
    for (const stop of this.#stops) await stop();
    rmSync(this.state, { recursive: true, force: true });
  }
}

export function attachArgs(pid: number, ...more: string[]): string[] {
  return ['attach', String(pid), '--inspect', '--json', '--no-recording', ...more];
}

/** Why each collector of a run could not see; null for those that could. */
export function reasons(run: Ended): (string | null)[] {
  return parseReport(run).collectors.map(({ reason }) => reason);
}

/** Resolves when V8's profiler runs in the target: from then on what it does is seen. */
export async function profiled(target: Inspected, run: CliRun): Promise<void> {
  let isOver = false;
  void run.ended.then(() => (isOver = true));
  while (!isBeingProfiled(target.pid)) {
    if (isOver) throw new Error(`no profiler: ${(await run.ended).stderr}`);
    await new Promise((resolve) => setTimeout(resolve, 20));
  }
}
