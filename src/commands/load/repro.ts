import { resolve } from 'node:path';
import { GENAI } from '../../core/semconv-genai.ts';
import { TraceError } from '../../core/errors.ts';
import { EXIT, type ExitCode } from '../../core/exit-code.ts';
import { LOAD_ATTR } from '../../core/semconv-load.ts';
import { median } from '../../core/statistics.ts';
import { printable } from '../../core/text.ts';
import type { Finding, Seconds, Span } from '../../core/types.ts';
import { writeFolder } from '../../../repro/generate/folder.ts';
import { generate, scriptName } from '../../../repro/generate/generate.ts';
import { lookAtPython } from '../../../repro/generate/look.ts';
import { type Oracle, SCHEMA_VERSION } from '../../../repro/parameters/parameters.ts';
import { openRecording } from '../../recording/reader.ts';
import type { Environment } from '../command-line/command.ts';
import { thisMachine } from '../repro/new/machine.ts';
import { requestSpans, trafficOf } from '../repro/new/traffic.ts';
import type { LoadRun } from './settings.ts';

/** `--repro`: the requests of a run that failed, were wrong or slow, with those that were under way beside them, as a script. */

/** A slow request takes so many times the median, */
const SLOW_RATIO = 3;
/** and so much longer than it: less is not felt. */
const SLOW_LEAST: Seconds = 0.1;
/** More do not fit into one script; the first are taken. */
const MOST_PICKED = 200;
const CROSSTALK = 'TRC118';
/** What one trial may take. */
const TIMEOUT: Seconds = 60;

/** What is sent again, and what must hold. */
export interface Chosen {
  readonly what: string;
  readonly oracle: Oracle;
  readonly spans: ReadonlySet<Span>;
  /** How many were under way at once, at most. */
  readonly concurrency: number;
}

/** The requests that went wrong, gravest kind first, with those beside them; null where none did. `spans` are sorted by their start. */
export function chooseRequests(
  spans: readonly Span[],
  findings: readonly Pick<Finding, 'code'>[],
): Chosen | null {
  if (spans.length === 0) return null;
  if (findings.some(({ code }) => code === CROSSTALK))
    return chosen(spans, { what: 'wrong', all: spans, oracle: { kind: 'cross-talk' } });
  const failed = spans.filter(({ attributes }) => attributes[GENAI.errorType] !== undefined);
  if (failed.length > 0)
    return chosen(failed, { what: 'failed', all: spans, oracle: { kind: 'exception' } });
  const usual = median(spans.map(lasted));
  const slow = spans.filter(
    (one) => lasted(one) > usual * SLOW_RATIO && lasted(one) > usual + SLOW_LEAST,
  );
  if (slow.length === 0) return null;
  return chosen(slow, { what: 'slow', all: spans, oracle: { kind: 'head-of-line' } });
}

function chosen(
  picked: readonly Span[],
  { what, all, oracle }: { what: string; all: readonly Span[]; oracle: Oracle },
): Chosen {
  const first = picked.slice(0, MOST_PICKED);
  const spans = new Set(first);
  for (const one of all)
    if (first.some(({ from, to }) => one.from < to && from < one.to)) spans.add(one);
  const turns = [...spans]
    .flatMap(({ from, to }) => [[from, 1] as const, [to, -1] as const])
    .toSorted(([a, x], [b, y]) => a - b || x - y);
  let [now, concurrency] = [0, 1];
  for (const [, turn] of turns) {
    now += turn;
    concurrency = Math.max(concurrency, now);
  }
  const count = what === 'wrong' ? 'with answers of others' : `${first.length} ${what}`;
  return { what: count, oracle, spans, concurrency };
}

function keyOf({ from, to, attributes }: Span): string {
  return `${from} ${to} ${String(attributes[LOAD_ATTR.requestIndex])}`;
}

function lasted({ from, to }: Span): Seconds {
  return to - from;
}

/** Writes the folder and says on stderr what is in it. Trouble is said and gives an exit code of its own. */
export async function writeRepro(
  folder: string,
  run: LoadRun,
  environment: Environment,
): Promise<ExitCode> {
  const { stderr, cwd } = environment;
  try {
    stderr.write(`${await written(resolve(cwd, folder), run)}\n`);
    return EXIT.ok;
  } catch (error) {
    if (!(error instanceof TraceError)) throw error;
    stderr.write(`trace: --repro: ${printable(error.message, 400)}\n`);
    return error.exitCode;
  }
}

async function written(folder: string, { recording, findings }: LoadRun): Promise<string> {
  if (recording === null)
    throw new TraceError('ERR_NO_TRAFFIC', 'the run could not be recorded', {
      exitCode: EXIT.invalid,
    });
  const view = await openRecording(recording);
  const found = chooseRequests(requestSpans(view), findings);
  if (found === null)
    return '--repro: no folder was written, no recorded request failed, was wrong or slow';
  const { oracle, spans, concurrency, what } = found;
  const wanted = new Set([...spans].map(keyOf));
  const traffic = trafficOf(view, oracle, {
    name: recording,
    isWanted: (one) => wanted.has(keyOf(one)),
  });
  const { version } = await lookAtPython({ python: 'python3', target: '', path: '.', env: {} });
  const files = generate(
    {
      schema_version: SCHEMA_VERSION,
      language: 'python',
      script: scriptName('python'),
      origin: 'traffic',
      hypothesis: null,
      traffic,
      oracle,
      attempts: traffic.requests.length,
      concurrency,
      timeout_s: TIMEOUT,
      seed: 1,
      packages: {},
      runtime: { name: 'python', version },
    },
    await thisMachine(),
  );
  await writeFolder(folder, files);
  return `${printable(folder, 1000)}: ${traffic.requests.length} requests (${what}; the others were under way beside them); trace repro run tries them`;
}
