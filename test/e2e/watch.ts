import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import type { RecordingView, Seconds } from '../../src/core/types.ts';
import { openRecording } from '../../src/recording/reader.ts';
import {
  startTarget,
  startTraffic,
  type TargetName,
  type TargetOptions,
} from '../targets/harness.ts';
import { scoreInput } from '../truth/from-recording.ts';
import { type Score, score } from '../truth/score.ts';
import { type Ended, parseReport, type ReportDocument, runCli } from './cli.ts';

/** Requests a second beside the plan when a target is watched under load. */
const TRAFFIC_RATE = 50;

export interface Watched {
  readonly run: Ended;
  readonly report: ReportDocument;
  readonly score: Score;
  readonly view: RecordingView;
}

/** Starts a target, attaches for so many seconds, and scores the recording against the target's own log. */
export async function watchTarget(
  name: TargetName,
  options: TargetOptions & {
    readonly watchS: number;
    readonly traffic?: boolean;
    /** The `--lag-threshold` of the run, where it is not the default. */
    readonly threshold?: Seconds;
    /** Further flags of attach. */
    readonly flags?: readonly string[];
  },
): Promise<Watched> {
  const { watchS, traffic = true, flags = [], threshold, ...plan } = options;
  const folder = mkdtempSync(join(tmpdir(), 'tracewright-e2e-'));
  const target = await startTarget(name, { seconds: watchS + 15, ...plan });
  const clients = traffic
    ? await startTraffic(target.port, { rate: TRAFFIC_RATE, seconds: watchS })
    : undefined;
  try {
    const recording = join(folder, 'recording');
    const watching = ['attach', String(target.pid), '-d', String(watchS), '--json'];
    const args = [...watching, '-o', recording, ...flags];
    if (threshold !== undefined) args.push('--lag-threshold', `${threshold}s`);
    const run = await runCli(args, { limitS: watchS + 30 });
    const report = parseReport(run);
    const view = await openRecording(recording);
    return {
      run,
      report,
      view,
      score: score({
        ...scoreInput(view, target.pid, target.truth()),
        ...(threshold === undefined ? {} : { threshold }),
      }),
    };
  } finally {
    await clients?.stop();
    await target.stop();
    rmSync(folder, { recursive: true, force: true });
  }
}
