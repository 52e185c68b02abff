import { detectAll } from '../../analysis/detectors.ts';
import { usageError } from '../../core/errors.ts';
import { combineExitCodes, EXIT, type ExitCode } from '../../core/exit-code.ts';
import { newTraceId } from '../../core/ids.ts';
import { missingParts } from '../../core/load-parts.ts';
import type { LoadResult } from '../../core/load-types.ts';
import { printable } from '../../core/text.ts';
import type { RecordingView, RunEnd, RunStart } from '../../core/types.ts';
import { withLoadResult } from '../../load/observe/read-back.ts';
import { mergeResults } from '../../load/results/merge.ts';
import { RECORDING_SCHEMA_VERSION } from '../../recording/format.ts';
import { memoryRecording } from '../../recording/memory.ts';
import { decideSurface } from '../../report/style.ts';
import { COMMON_OPTIONS, type Environment, type OptionValues } from '../command-line/command.ts';
import { parseResult } from './options.ts';
import { readLoadResult } from './read.ts';
import { Judgement } from './result.ts';
import { LoadValues } from './values.ts';
import { toolVersion } from '../version.ts';

/** `trace load merge A B C`: the results of several machines as one. */

/** What says how a result is judged and shown; the others say what is sent. */
const TAKEN: readonly string[] = [
  'fail-on',
  'baseline',
  'format',
  'json',
  'save',
  'csv',
  'junit',
  'force',
  'exit-zero',
  ...Object.keys(COMMON_OPTIONS),
];

export async function mergeLoads(
  values: OptionValues,
  paths: readonly string[],
  environment: Environment,
): Promise<ExitCode> {
  const other = Object.keys(values).find((name) => !TAKEN.includes(name));
  if (other !== undefined) {
    throw usageError(`--${other} says how to send, and merge sends nothing`);
  }
  if (paths.length === 0) {
    throw usageError(
      'no results to merge',
      'trace load merge one.json two.json: what --save wrote on each machine, or recordings.',
    );
  }
  const judgement = await Judgement.open(parseResult(new LoadValues(values)), environment);
  const results: LoadResult[] = [];
  for (const path of paths) results.push(await readLoadResult(path, environment.cwd));
  const result = mergeResults(results);
  const view = viewOf(result);
  const problems = problemsOf(result);
  if (values['quiet'] !== true) {
    for (const problem of problems) environment.stderr.write(`trace: ${problem}\n`);
  }
  const { stdout, env } = environment;
  const surface = decideSurface({
    env,
    isTTY: stdout.isTTY,
    columns: stdout.columns,
    noColor: values['no-color'] === true,
  });
  const findings = detectAll(view);
  const code = await judgement.conclude(
    { result, view, findings, recording: null, traceUrl: null, signal: null },
    { surface, problems },
  );
  return combineExitCodes([code, problems.length > 0 ? EXIT.invalid : EXIT.ok]);
}

/** What makes the merged result a partial one. */
function problemsOf(result: LoadResult): readonly string[] {
  const missing = missingParts(result).map((index) => index + 1);
  const killed = result.parts.present.filter(({ complete }) => !complete);
  return [
    ...(missing.length === 0
      ? []
      : [
          `the result is partial: part ${missing.join(', ')} of ${result.parts.expected} is not there`,
        ]),
    ...killed.map(
      ({ index, host }) =>
        `the result is partial: part ${index + 1} (${printable(host, 60)}) was killed, and counts up to its last second`,
    ),
  ];
}

/** The merged result as a recording of one run would hold it, from the first beginning to the last end. */
function viewOf(result: LoadResult): RecordingView {
  const startedAt = Math.min(...result.parts.present.map(({ wall }) => wall));
  const start: RunStart = {
    schemaVersion: RECORDING_SCHEMA_VERSION,
    toolVersion: toolVersion(),
    command: 'load',
    startedAt,
    traceId: newTraceId(),
    targets: [],
    collectors: [],
    settings: { url: result.url, api: result.api, model: result.model, run_id: result.runId },
  };
  const end: RunEnd = {
    endedAt: startedAt + (result.total.to - result.total.from),
    interrupted: result.interrupted,
    reason: result.interrupted ? 'interrupted' : 'finished',
    ownCpuRatio: 0,
    startupCpu: 0,
    targetPaused: 0,
    samples: 0,
    late: 0,
    dropped: 0,
  };
  return withLoadResult(memoryRecording(start).view(end), result);
}
