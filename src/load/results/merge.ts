import { TraceError } from '../../core/errors.ts';
import { EXIT } from '../../core/exit-code.ts';
import type { LoadPart, LoadResult, StageResult } from '../../core/load-types.ts';
import { printable } from '../../core/text.ts';
import type { Seconds } from '../../core/types.ts';
import { mergeCourses } from './course.ts';
import { objectivesText } from './objectives.ts';
import { addCounts, addGoodput, addHealth, addWindows, totalOf } from './total.ts';

/**
 * One result out of those of several machines that drove one server at the same time: counts are added, histograms merged. Whatever order
 * the parts come in, and whichever are merged first, the result is the same (sums of durations to the rounding of their addition). A part
 * that is missing or was killed leaves a partial result that says so. Throws a TraceError when they are not parts of one run.
 */
export function mergeResults(results: readonly LoadResult[]): LoadResult {
  const ordered = results.toSorted((a, b) => firstPart(a).index - firstPart(b).index);
  const [first, ...others] = ordered;
  if (first === undefined) throw mismatch('there is no result to merge');
  for (const other of others) checkSameRun(first, other);
  const present = ordered
    .flatMap((result) => result.parts.present)
    .sort((a, b) => a.index - b.index);
  checkParts(present, first.parts.expected);
  if (others.length === 0) return first;
  const longest = Math.max(...ordered.map((result) => result.stages.length));
  const stages = Array.from({ length: longest }, (_, i) =>
    mergeStage(
      ordered.flatMap((result) => {
        const stage = result.stages[i];
        return stage === undefined
          ? []
          : [{ stage, shift: shiftBetween(firstPart(result), firstPart(first)) }];
      }),
      first,
    ),
  );
  return {
    ...first,
    parts: { expected: first.parts.expected, present },
    workers: ordered.reduce((sum, result) => sum + result.workers, 0),
    stages,
    total: totalOf(stages, first.slos),
    interrupted: ordered.some((result) => result.interrupted),
  };
}

function firstPart({ parts }: LoadResult): LoadPart {
  const [first] = parts.present;
  if (first === undefined) throw mismatch('a result has no parts');
  return first;
}

function checkSameRun(first: LoadResult, other: LoadResult): void {
  const differ = (what: string, a: string | number | boolean, b: typeof a): void => {
    if (a === b) return;
    const [ours, theirs] = [firstPart(first), firstPart(other)].map(nameOf);
    throw mismatch(`${what}: ${shown(a)} in ${ours}, ${shown(b)} in ${theirs}`);
  };
  differ('run id', first.runId, other.runId);
  differ('number of parts', first.parts.expected, other.parts.expected);
  differ('seed', first.seed, other.seed);
  differ('URL', first.url, other.url);
  differ('API', first.api, other.api);
  differ('model', first.model, other.model);
  differ('streaming', first.streaming, other.streaming);
  differ('objectives', objectivesText(first.slos), objectivesText(other.slos));
}

function checkParts(present: readonly LoadPart[], expected: number): void {
  present.forEach((part, i) => {
    const next = present[i + 1];
    if (next?.index === part.index) {
      throw mismatch(
        `part ${part.index + 1} is there twice: of ${shown(part.host)} and of ${shown(next.host)}`,
      );
    }
    if (part.index >= expected) {
      throw mismatch(`there is a part ${part.index + 1} of ${expected}`);
    }
  });
}

function mismatch(why: string): TraceError {
  return new TraceError('ERR_LOAD_MERGE', `these are not parts of one run: ${why}`, {
    exitCode: EXIT.usage,
    remedy: 'Run each machine with the same options and --run-id, and its own --part.',
  });
}

function nameOf(part: LoadPart): string {
  return `part ${part.index + 1} (${shown(part.host)})`;
}

function shown(value: string | number | boolean): string {
  return printable(String(value), 100);
}

/** What turns points in time of one machine's CLOCK_MONOTONIC into those of another's, as well as the clocks are known. */
function shiftBetween(part: LoadPart, reference: LoadPart): Seconds {
  // On the server's clock, in the middle of what is known of it; who heard none is taken to be right.
  const zero = ({ wall, mono, serverOffset }: LoadPart): Seconds =>
    wall - mono + (serverOffset === null ? 0 : (serverOffset.low + serverOffset.high) / 2);
  return zero(part) - zero(reference);
}

interface PlacedStage {
  readonly stage: StageResult;
  readonly shift: Seconds;
}

/** Machines work side by side: levels and numbers in flight add up, lengths do not. */
function mergeStage(placed: readonly PlacedStage[], { slos }: LoadResult): StageResult {
  const stages = placed.map(({ stage }) => stage);
  const from = Math.min(...placed.map(({ stage, shift }) => stage.from + shift));
  const longest = (end: (stage: StageResult) => Seconds): Seconds =>
    Math.max(...stages.map((stage) => end(stage) - stage.from));
  return {
    ...mergeLevels(stages),
    from,
    to: from + longest((stage) => stage.to),
    sendingEnded: from + longest((stage) => stage.sendingEnded),
    window: addWindows(stages, Math.max(...stages.map((stage) => stage.window.seconds))),
    course: mergeCourses(stages.map((stage) => stage.course)),
    ...addCounts(stages),
    goodput: addGoodput(stages, slos),
    inFlight: {
      mean: stages.reduce((sum, stage) => sum + stage.inFlight.mean, 0),
      max: stages.reduce((sum, stage) => sum + stage.inFlight.max, 0),
    },
    health: {
      ...addHealth(stages),
      coreShare: stages.flatMap((stage) => stage.health.coreShare).sort((a, b) => b - a),
    },
  };
}

function mergeLevels(stages: readonly StageResult[]): Pick<StageResult, 'label' | 'asked'> {
  const [first] = stages;
  const label = first?.label ?? '';
  const kind = first?.asked?.kind ?? null;
  const other = stages.find((stage) => (stage.asked?.kind ?? null) !== kind);
  if (other !== undefined) {
    throw mismatch(`a level is ${shown(label)} in one and ${shown(other.label)} in another`);
  }
  const asked =
    kind === null
      ? null
      : { kind, value: stages.reduce((sum, stage) => sum + (stage.asked?.value ?? 0), 0) };
  if (stages.every((stage) => stage.label === levelName(stage.asked))) {
    return { label: levelName(asked) ?? label, asked };
  }
  const named = stages.find((stage) => stage.label !== label);
  if (named !== undefined) {
    throw mismatch(`a level is ${shown(label)} in one and ${shown(named.label)} in another`);
  }
  return { label, asked };
}

/** The label that a level has when nobody named it: two machines of `c=32` are `c=64`. */
function levelName(asked: StageResult['asked']): string | null {
  if (asked === null) return null;
  return asked.kind === 'concurrency' ? `c=${asked.value}` : `${asked.value} req/s`;
}
