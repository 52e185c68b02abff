import { printable } from '../../src/core/text.ts';
import type { Seconds } from '../../src/core/types.ts';
import { formatSeconds } from '../../src/core/units.ts';
import { type Fault, faultIn } from './faults.ts';
import { KNOWN_FIELDS, listedFields, queryFor } from './fields.ts';
import { type GpuReading, readingOf } from './reading.ts';
import type { Answer, Smi } from './smi.ts';
import { CsvTable } from './table.ts';

/** Finding out what this nvidia-smi can be asked, and which GPUs there are. */

/** What is asked, and what it answered first. */
export interface Catalog {
  /** Names of `--query-gpu`. */
  readonly fields: readonly string[];
  readonly gpus: readonly GpuReading[];
}

export type Discovery =
  | { readonly ok: true; readonly catalog: Catalog }
  /** `hangs`: it did not answer, and may later. */
  | {
      readonly ok: false;
      readonly hangs: boolean;
      readonly why: string;
      readonly fault: Fault | null;
    };

/** Names that a driver may list and yet refuse; beyond so many something else is wrong. */
const REFUSALS_TAKEN = 8;
/** GPUs of one machine, as far as they are told apart; more is a mistake. */
export const GPU_LIMIT = 64;
const REASON_LIMIT = 200;

/** Three starts of nvidia-smi at most, and as many more as names are refused. */
export async function discover(smi: Smi, limit: Seconds): Promise<Discovery> {
  const help = await smi.ask(['--help-query-gpu'], limit);
  if (help.kind !== 'answer') return noAnswer(help, limit);
  let fields = queryFor(listedFields(help.text));
  if (fields.length === 0) return failed(help.text, 'it lists no property that is known');
  for (let refused = 0; refused <= REFUSALS_TAKEN; refused++) {
    const answer = await smi.ask(queryArguments(fields), limit);
    if (answer.kind !== 'answer') return noAnswer(answer, limit);
    const gpus = readGpus(answer.text);
    if (gpus.length > 0) return { ok: true, catalog: { fields, gpus } };
    const name = refusedField(answer.text);
    if (name === null || !fields.includes(name)) {
      return failed(answer.text, `it answered with code ${answer.code ?? 0} and no GPU`);
    }
    fields = fields.filter((one) => one !== name);
  }
  return failed('', 'it refuses what it lists');
}

/** The arguments that ask for these properties of every GPU. */
export function queryArguments(fields: readonly string[]): readonly string[] {
  return [`--query-gpu=${fields.join(',')}`, '--format=csv'];
}

/** The name that nvidia-smi does not take; null for any other text. */
export function refusedField(text: string): string | null {
  return /Field "([\w.]+)" is not a valid field to query/.exec(text)?.[1] ?? null;
}

function readGpus(text: string): readonly GpuReading[] {
  const table = new CsvTable(KNOWN_FIELDS);
  return text
    .split(/\r?\n/)
    .flatMap((line) => {
      const row = table.take(line);
      return row === null || row === 'header' ? [] : (readingOf(row) ?? []);
    })
    .slice(0, GPU_LIMIT);
}

/** Why there was no answer, in words. */
export function noAnswer(answer: Exclude<Answer, { kind: 'answer' }>, limit: Seconds): Discovery {
  const why = {
    hung: `nvidia-smi did not answer within ${formatSeconds(limit)} and was killed: the driver hangs or is very slow`,
    busy: 'an nvidia-smi that was killed is still held by the driver',
    'not-started': `nvidia-smi could not be started${answer.kind === 'not-started' ? `: ${printable(answer.reason, REASON_LIMIT)}` : ''}`,
  }[answer.kind];
  return { ok: false, hangs: answer.kind !== 'not-started', why, fault: null };
}

function failed(text: string, otherwise: string): Discovery {
  const line = reasonIn(text);
  const why = line === null ? `nvidia-smi: ${otherwise}` : `nvidia-smi says: ${line}`;
  return { ok: false, hangs: false, why, fault: line === null ? null : faultIn(line) };
}

/** The first line that is a sentence. */
export function reasonIn(text: string): string | null {
  const line = text.split(/\r?\n/).find((one) => /[a-z]{3}/i.test(one) && / /.test(one.trim()));
  return line === undefined ? null : printable(line.trim(), REASON_LIMIT);
}
