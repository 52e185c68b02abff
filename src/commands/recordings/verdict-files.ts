import { readFile, stat } from 'node:fs/promises';
import { join, resolve } from 'node:path';
import type { Verdict } from '../../analysis/hypotheses/hypotheses.ts';
import { TraceError } from '../../core/errors.ts';
import { EXIT } from '../../core/exit-code.ts';
import { printable } from '../../core/text.ts';

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
  const info = await stat(file).catch(() => null);
  if (info === null || info.size > MOST_BYTES) {
    throw noVerdict(file, info === null ? 'there is none' : 'it is too large');
  }
  const read = toVerdict(parse(await readFile(file, 'utf8')));
  if (read === null) throw noVerdict(file, 'it names no mechanism and outcome');
  return read;
}

function parse(text: string): unknown {
  try {
    return JSON.parse(text) as unknown;
  } catch {
    return null;
  }
}

function toVerdict(value: unknown): Verdict | null {
  if (typeof value !== 'object' || value === null) return null;
  const { outcome, hypothesis, summary } = value as Record<string, unknown>;
  const mechanism =
    typeof hypothesis === 'object' && hypothesis !== null
      ? (hypothesis as Record<string, unknown>)['mechanism']
      : null;
  if (typeof mechanism !== 'string') return null;
  if (outcome !== 'reproduced' && outcome !== 'not-reproduced' && outcome !== 'invalid')
    return null;
  return {
    mechanism: printable(mechanism, 60),
    outcome,
    summary: printable(typeof summary === 'string' ? summary : outcome, 300),
  };
}

function noVerdict(file: string, why: string): TraceError {
  return new TraceError('ERR_VERDICT_NOT_FOUND', `no verdict in ${printable(file)}: ${why}`, {
    exitCode: EXIT.notFound,
    remedy: 'Name the folder of a reproduction after `trace repro run` has judged it.',
  });
}
