import { randomBytes } from 'node:crypto';
import { basename } from 'node:path';
import { anchoredClock, takeAnchor } from '../../../core/clock.ts';
import { newTraceId } from '../../../core/ids.ts';
import { REPRO_ATTR, REPRO_SPAN } from '../../../core/semconv-repro.ts';
import type { RunStart, Seconds } from '../../../core/types.ts';
import type { Verdict } from '../../../core/verdict.ts';
import type { Trial } from '../../../../repro/trials/trial.ts';
import { defaultRecordingDirectory } from '../../../recording/directory.ts';
import { RECORDING_SCHEMA_VERSION } from '../../../recording/format.ts';
import { openRecordingWriter, type RecordingSink } from '../../../recording/writer.ts';
import type { Environment } from '../../command-line/command.ts';
import { toolVersion } from '../../version.ts';
import type { NamedArm } from './arms.ts';

/** A run of trials as one OpenTelemetry trace in a recording: a span for each trial below that of the run. */
export class TrialRecord {
  readonly traceId: string;
  readonly startedAt: Seconds;
  readonly #clock = anchoredClock(takeAnchor());
  readonly #sink: RecordingSink;

  static async open(
    folder: string,
    { environment, start }: { readonly environment: Environment; readonly start: Settings },
  ): Promise<TrialRecord> {
    const now = Date.now() / 1e3;
    const traceId = newTraceId();
    const run: RunStart = {
      schemaVersion: RECORDING_SCHEMA_VERSION,
      toolVersion: toolVersion(),
      command: 'repro run',
      startedAt: now,
      traceId,
      targets: [],
      collectors: [],
      settings: start,
    };
    const { cwd, env } = environment;
    const sink = await openRecordingWriter({
      directory: defaultRecordingDirectory({
        verb: 'repro',
        target: basename(folder),
        now,
        cwd,
        env,
      }),
      start: run,
      env,
      ifExists: 'suffix',
    });
    return new TrialRecord(sink, run);
  }

  private constructor(sink: RecordingSink, { traceId, startedAt }: RunStart) {
    this.#sink = sink;
    this.traceId = traceId;
    this.startedAt = startedAt;
  }

  get directory(): string {
    return this.#sink.directory;
  }

  trial({ label }: NamedArm, { seed, outcome, errors, attempts, seconds, reason }: Trial): void {
    const to = this.#clock.now();
    this.#sink.write({
      kind: 'span',
      name: REPRO_SPAN.trial,
      from: to - seconds,
      to,
      attributes: {
        [REPRO_ATTR.arm]: label,
        [REPRO_ATTR.seed]: seed,
        [REPRO_ATTR.outcome]: outcome,
        [REPRO_ATTR.errors]: errors,
        [REPRO_ATTR.attempts]: attempts,
        ...(reason === null ? {} : { [REPRO_ATTR.reason]: reason }),
      },
      context: {
        spanId: randomBytes(8).toString('hex'),
        role: 'client',
        failed: outcome === 'invalid',
        sampled: true,
      },
    });
  }

  /** Writes the end; the verdict stands on the root span. */
  async end({ outcome, subject, control, duration }: Verdict, interrupted: boolean): Promise<void> {
    await this.#sink.end(
      {
        endedAt: this.startedAt + duration,
        interrupted,
        reason: interrupted ? 'interrupted' : 'duration',
        ownCpuRatio: 0,
        startupCpu: 0,
        targetPaused: 0,
        samples: 0,
        late: 0,
        dropped: 0,
        summary: {
          [REPRO_ATTR.outcome]: outcome,
          'tracewright.repro.reproduced.count': subject.reproduced,
          'tracewright.repro.trial.count': subject.trials,
          'tracewright.repro.invalid.count': subject.invalid,
          ...(control === null
            ? {}
            : {
                'tracewright.repro.control.reproduced.count': control.reproduced,
                'tracewright.repro.control.trial.count': control.trials,
              }),
        },
      },
      [],
    );
  }
}

type Settings = RunStart['settings'];
