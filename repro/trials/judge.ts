import { maskText } from '../../src/core/secrets/mask.ts';
import { printable } from '../../src/core/text.ts';
import { formatSeconds } from '../../src/core/units.ts';
import type { OracleKind } from '../parameters/parameters.ts';
import type { GroupEnd } from './process-group.ts';
import type { Trial } from './trial.ts';

/** The last line of a script, as the contract of reproductions has it. */
const TALLY = /^Errors: (\d{1,9}) \/ (\d{1,9})$/gm;

/** Characters of a line that are looked at for what must not be shown. */
const LOOKED_AT = 1000;

/** What a script's exit code means: those of `git bisect run`. */
const REPRODUCED = 1;
const CANNOT_TEST = 125;

/** What the end of a trial's process says of the fault. */
export function judge(
  end: GroupEnd,
  oracle: OracleKind,
): Pick<Trial, 'outcome' | 'errors' | 'attempts' | 'reason' | 'outputTail'> {
  const [, errors = '0', attempts = '0'] = [...end.output.matchAll(TALLY)].at(-1) ?? [];
  const counts = { errors: Number(errors), attempts: Number(attempts), outputTail: end.output };
  const invalid = (reason: string) => ({ ...counts, outcome: 'invalid' as const, reason });
  if (end.ended === 'not-started') return invalid(end.reason);
  if (end.ended === 'aborted') return invalid('it was stopped');
  if (end.ended === 'timeout') {
    // One that waits for ever, script and all, is what this oracle asks about.
    if (oracle === 'no-progress') return { ...counts, outcome: 'reproduced', reason: null };
    // It has said that others wait, and is still stuck.
    if (oracle === 'head-of-line' && counts.errors > 0)
      return { ...counts, outcome: 'reproduced', reason: null };
    return invalid(`it did not end within ${formatSeconds(end.limit)}`);
  }
  const { code, signal } = end;
  if (code === CANNOT_TEST)
    return invalid(lastLine(end.output) ?? 'it could not test, and said not why');
  // Without its last line, 1 is what an interpreter ends with that failed itself.
  if (attempts === '0')
    return invalid(
      `${signal === null ? `it ended with ${code ?? 0}` : `${signal} ended it`} before it counted${colon(end.output)}`,
    );
  if (code === 0 && counts.errors === 0)
    return { ...counts, outcome: 'not-reproduced', reason: null };
  if (code === REPRODUCED && counts.errors > 0)
    return { ...counts, outcome: 'reproduced', reason: null };
  return invalid(`it ended with ${signal ?? code} after 'Errors: ${errors} / ${attempts}'`);
}

function colon(output: string): string {
  const line = lastLine(output);
  return line === null ? '' : `: ${line}`;
}

function lastLine(output: string): string | null {
  const line = output.trimEnd().split('\n').at(-1)?.trim() ?? '';
  return line === '' ? null : printable(maskText(line.slice(0, LOOKED_AT)), 160);
}
