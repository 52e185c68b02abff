import { setTimeout as sleep } from 'node:timers/promises';
import type { POOL_LOOK } from '../../../collectors/python/pool-watch.ts';
import { SharedPython } from '../../../collectors/python/shared-python.ts';
import { deadlock } from '../../../src/analysis/deadlock.ts';
import { fakeClock } from '../../../src/core/clock.ts';
import type {
  Detector,
  RecordingView,
  Seconds,
  Snapshot,
  UnnumberedFinding,
} from '../../../src/core/types.ts';
import { startReady } from '../../targets/harness.ts';

/** One look at a Python program, again and again, and the detector that reads what it saw. */
export interface Watching {
  readonly python: string;
  /** The program and its arguments. */
  readonly program: readonly string[];
  readonly look: Pick<typeof POOL_LOOK, 'begin'>;
  /** The kind of its snapshots. */
  readonly kind: string;
  /** Between two turns, by this machine's clock and by the look's. */
  readonly every: { readonly real: Seconds; readonly told: Seconds };
  /** Who reads it; that of deadlocks, where none are named. */
  readonly detectors?: readonly Detector[];
  /**
   * Whether this is what is waited for: on a busy machine some are a turn late. By default,
   * anything.
   */
  readonly isEnough?: (found: readonly UnnumberedFinding[]) => boolean;
}

/** What is found in so many turns of the look at most; of the last, where it was never enough. */
export async function findingsOfLook(
  { python, program, look, kind, every, detectors = [deadlock], isEnough = () => true }: Watching,
  turns: number,
): Promise<UnnumberedFinding[]> {
  const target = await startReady(python, [...program]);
  const shared = new SharedPython();
  const snapshots: Snapshot[] = [];
  const view = {
    snapshots: (of: string) => (of === kind ? snapshots : []),
  } as unknown as RecordingView;
  try {
    const opened = shared.open(target.pid);
    if (!opened.ok) throw new Error(opened.reason);
    const clock = fakeClock();
    const { signal } = new AbortController();
    const context = { pid: target.pid, reader: opened.reader, shared, clock, signal };
    const looking = look.begin(context);
    if (looking === null) throw new Error('no tasks');
    let findings: UnnumberedFinding[] = [];
    for (let turn = 0; turn < turns; turn++) {
      await sleep(every.real * 1e3);
      clock.advance(every.told);
      for await (const one of looking({ now: clock.mono(), isLast: false }))
        if (one.kind === 'snapshot') snapshots.push(one);
      findings = detectors.flatMap((each) => [...each.detect(view)]);
      if (findings.length > 0 && isEnough(findings)) break;
    }
    return findings;
  } finally {
    shared.close();
    await target.stop();
  }
}
