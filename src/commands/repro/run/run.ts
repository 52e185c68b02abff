import { writeFile } from 'node:fs/promises';
import { join, resolve } from 'node:path';
import { monotonicNow } from '../../../core/clock.ts';
import { errorCode, TraceError } from '../../../core/errors.ts';
import { EXIT, type ExitCode, exitCodeOfStop } from '../../../core/exit-code.ts';
import { exactUpperBound } from '../../../core/proportions.ts';
import type { Verdict } from '../../../core/verdict.ts';
import type { ReproParameters } from '../../../../repro/parameters/parameters.ts';
import { readParameters } from '../../../../repro/parameters/read.ts';
import { runRounds } from '../../../../repro/run/rounds.ts';
import { verdictOf } from '../../../../repro/run/tally.ts';
import { isRewritable } from '../../../report/style.ts';
import { verdictDocument, type TrialLine } from '../../../report/verdict-json.ts';
import { boundText, leftText, verdictText } from '../../../report/verdict-text.ts';
import type { Command, CommandContext, Environment } from '../../command-line/command.ts';
import { toolVersion } from '../../version.ts';
import { StopSignals } from '../../watching/stop-signals.ts';
import { type Arms, makeArms } from './arms.ts';
import { parseRunOptions, type RunOptions } from './options.ts';
import { TrialRecord } from './record.ts';
import { reproRunUsage } from './usage.ts';
import { inOneLine } from '../../../core/text.ts';

/** `trace repro run`: trials of a reproduction, and what they say. */
export const reproRunCommand: Command = { ...reproRunUsage, run };

async function run({ values, positionals, environment }: CommandContext): Promise<ExitCode> {
  const options = parseRunOptions(values, positionals);
  const folder = resolve(environment.cwd, options.folder);
  const parameters = await readParameters(folder);
  const signals = new StopSignals(environment);
  const abort = new AbortController();
  signals.listen(() => abort.abort());
  try {
    const arms = await makeArms(parameters, { options, environment, abort: abort.signal });
    const outcome = await tryAndJudge({ options, folder, parameters, environment, arms, abort });
    if (signals.received !== null) return exitCodeOfStop(signals.received);
    return outcome;
  } catch (error) {
    // Installing was cut off: not the registry's fault.
    if (signals.received === null || !(error instanceof TraceError)) throw error;
    return exitCodeOfStop(signals.received);
  } finally {
    signals.close();
  }
}

interface Trying {
  readonly options: RunOptions;
  readonly folder: string;
  readonly parameters: ReproParameters;
  readonly environment: Environment;
  readonly arms: Arms;
  readonly abort: AbortController;
}

async function tryAndJudge(trying: Trying): Promise<ExitCode> {
  const { options, folder, parameters, environment, arms, abort } = trying;
  const record = options.record ? await openRecord(trying) : null;
  const began = monotonicNow();
  const startedAt = Date.now() / 1e3;
  const trials: TrialLine[] = [];
  let hits = 0;
  let stoppedEarly = false;
  const { runs, format } = options;
  const planned = runs * (arms.control === null ? 1 : 2);
  const showsProgress = options.progress && isRewritable(environment.stderr, environment.env);
  const done = await runRounds({
    folder,
    arms: arms.control === null ? [arms.subject] : [arms.subject, arms.control],
    runs,
    seed: options.seed ?? parameters.seed,
    abort: abort.signal,
    onTrial: (arm, trial) => {
      const { outputTail: _, ...line } = trial;
      trials.push({ arm: arm.label, ...line });
      record?.trial(arm, trial);
      if (showsProgress)
        environment.stderr.write(
          `\r${trials.length} of ${planned} trials: ${arm.label}: ${trial.outcome}  \x1b[K`,
        );
      if (arm === arms.subject && trial.outcome === 'reproduced') hits++;
      stoppedEarly = hits === options.stopAfter;
      return stoppedEarly;
    },
  });
  if (showsProgress) environment.stderr.write('\r\x1b[K');
  const verdict = verdictOf({
    subject: { label: arms.subject.label, trials: done[0]?.trials ?? [] },
    control:
      arms.control === null ? null : { label: arms.control.label, trials: done[1]?.trials ?? [] },
    stoppedEarly: stoppedEarly || abort.signal.aborted,
    duration: monotonicNow() - began,
  });
  await record?.end(verdict, abort.signal.aborted);
  const text = verdictDocument(verdict, {
    toolVersion: toolVersion(),
    startedAt,
    interrupted: abort.signal.aborted,
    hypothesis: parameters.hypothesis,
    trials,
    traceId: record?.traceId ?? null,
    recording: record?.directory ?? null,
  });
  await writeFile(join(folder, 'verdict.json'), text, { mode: 0o600 }).catch((error: unknown) => {
    environment.stderr.write(`trace: verdict.json cannot be written: ${errorCode(error)}\n`);
  });
  const bound = boundOf(verdict, options);
  environment.stdout.write(
    format === 'json' ? text : verdictText(verdict) + boundText(bound) + leftText(trials),
  );
  environment.onResult?.({ summary: inOneLine(verdictText(verdict)), link: folder });
  return exitCodeOf(verdict, bound);
}

async function openRecord({ folder, options, environment, parameters }: Trying) {
  try {
    return await TrialRecord.open(folder, {
      environment,
      start: {
        runs: options.runs,
        seed: options.seed ?? parameters.seed,
        attempts: parameters.attempts,
        concurrency: parameters.concurrency,
        oracle: parameters.oracle.kind,
      },
    });
  } catch (error) {
    if (!(error instanceof TraceError)) throw error;
    environment.stderr.write(`trace: no recording was kept: ${error.message}\n`);
    return null;
  }
}

/** `--expect none`: whether the rate is surely under the most that may be. */
function boundOf({ subject, stoppedEarly }: Verdict, { expect, maxRate }: RunOptions) {
  if (expect !== 'none') return null;
  const upper = stoppedEarly
    ? subject.interval.high
    : exactUpperBound(subject.reproduced, subject.trials);
  return { upper, maxRate };
}

function exitCodeOf({ outcome }: Verdict, bound: ReturnType<typeof boundOf>): ExitCode {
  if (outcome === 'invalid') return EXIT.invalid;
  if (bound !== null) return bound.upper < bound.maxRate ? EXIT.ok : EXIT.finding;
  return outcome === 'reproduced' ? EXIT.finding : EXIT.ok;
}
