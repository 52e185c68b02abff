import { hypothesisMechanism } from '../../core/hypothesis.ts';
import { stat } from 'node:fs/promises';
import { dirname, join, resolve } from 'node:path';
import type { Verdict } from '../../analysis/hypotheses/hypotheses.ts';
import { errorCode, TraceError } from '../../core/errors.ts';
import { EXIT } from '../../core/exit-code.ts';
import { printable } from '../../core/text.ts';
import { readOutside } from '../../platform/outside-file.ts';

/** In a folder that `trace repro` wrote. */
const VERDICT_FILE = 'verdict.json';
/** A verdict holds a few numbers; what is larger is none. */
const MOST_BYTES = 2 ** 20;

/** The verdicts named by `--verdict`, each a folder of a reproduction or its verdict.json. Throws a TraceError for what is none. */
export async function readVerdicts(
  value: string | boolean | readonly (string | boolean)[] | undefined,
  cwd: string,
): Promise<readonly Verdict[]> {
  const paths = Array.isArray(value) ? value : value === undefined ? [] : [value];
  return Promise.all(paths.map((path) => readVerdict(resolve(cwd, String(path)))));
}

async function readVerdict(path: string): Promise<Verdict> {
  const found = await stat(path).catch(() => null);
  const file = found?.isDirectory() === true ? join(path, VERDICT_FILE) : path;
  const verdict = await readObject(file);
  // What was tested stands beside it.
  const tested = verdict['hypothesis'] ?? (await besideOf(file))['hypothesis'];
  const mechanism = isObject(tested) ? tested['mechanism'] : null;
  const { outcome } = verdict;
  if (outcome !== 'reproduced' && outcome !== 'not-reproduced' && outcome !== 'invalid') {
    throw noVerdict(file, 'it names no outcome');
  }
  if (typeof mechanism !== 'string') {
    throw noVerdict(
      file,
      'the reproduction was not made for a hypothesis (trace repro new <recording>#H1)',
    );
  }
  const counts = [countText(verdict['subject']), countText(verdict['control'])];
  const [subject = 'no trial', control] = counts.filter((text) => text !== null);
  return {
    mechanism: hypothesisMechanism(mechanism),
    outcome,
    summary: `${outcome.replace('-', ' ')}, ${subject}${control === undefined ? '' : `, the control ${control}`}`,
  };
}

/** `3 of 20 trials`; null for what holds no counts. */
function countText(tally: unknown): string | null {
  if (!isObject(tally)) return null;
  const { reproduced, trials } = tally;
  if (typeof reproduced !== 'number' || typeof trials !== 'number') return null;
  return `${reproduced} of ${trials} trials`;
}

type JsonObject = Readonly<Record<string, unknown>>;

function isObject(value: unknown): value is JsonObject {
  return typeof value === 'object' && value !== null;
}

async function besideOf(file: string): Promise<JsonObject> {
  return readObject(join(dirname(file), 'parameters.json')).catch(() => ({}));
}

async function readObject(file: string): Promise<JsonObject> {
  const text = await readOutside(file, MOST_BYTES).catch((error: unknown) => {
    const code = errorCode(error);
    throw noVerdict(file, code === 'ENOENT' ? 'there is none' : code);
  });
  try {
    const value = JSON.parse(text) as unknown;
    if (isObject(value)) return value;
  } catch {
    // No JSON, or half of it: the same as something else.
  }
  throw noVerdict(file, 'it is no verdict');
}

function noVerdict(file: string, why: string): TraceError {
  return new TraceError('ERR_VERDICT_NOT_FOUND', `no verdict in ${printable(file)}: ${why}`, {
    exitCode: EXIT.notFound,
    remedy: 'Name the folder of a reproduction after `trace repro run` has judged it.',
  });
}
