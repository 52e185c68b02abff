import { runGroup } from '../../../repro/trials/process-group.ts';
import { exactUpperBound } from '../../core/proportions.ts';
import { maskText } from '../../core/secrets/mask.ts';
import { printable } from '../../core/text.ts';
import type { Seconds } from '../../core/types.ts';
import type { CommandContext } from '../command-line/command.ts';
import { StopSignals } from '../watching/stop-signals.ts';

/** A command that shows a fault, run some times: 0 means the fault did not show, 125 to 127 that it could not be tested, anything else that it did. */

/** As `git bisect run` and shells have them: cannot test, cannot be executed, not found. */
const CANNOT_TEST: ReadonlySet<number> = new Set([125, 126, 127]);
const OUTPUT_KEPT = 2000;

/** What came of it. */
export interface Trials {
  readonly failing: number;
  readonly passing: number;
  readonly invalid: number;
  /** End of what the last one that failed wrote, else the last one. Untrusted. */
  readonly output: string;
  /** Why, of the last that could not be tested. */
  readonly reason: string | null;
  /** Command lines of what runs left running, and what was ended then; each once. Safe to print. */
  readonly left: readonly string[];
  readonly isInterrupted: boolean;
}

/** Runs the command so many times, one after the other, each in a process group of its own that ends with it. */
export async function runTrials(
  command: readonly string[],
  options: {
    readonly cwd: string;
    readonly runs: number;
    readonly limit: Seconds;
    readonly context: CommandContext;
  },
): Promise<Trials> {
  const { cwd, runs, limit, context } = options;
  const signals = new StopSignals(context.environment);
  const abort = new AbortController();
  signals.listen(() => abort.abort());
  const counts = { failing: 0, passing: 0, invalid: 0 };
  let output = '';
  let reason: string | null = null;
  const left = new Set<string>();
  try {
    for (let i = 0; i < runs && !abort.signal.aborted; i++) {
      const env = context.environment.env as NodeJS.ProcessEnv;
      const end = await runGroup(command, { cwd, env, limit, abort: abort.signal });
      if (end.ended === 'aborted') break;
      // With more before it: the beginning of what is kept may be the middle of a credential.
      const text = maskText(end.output.slice(-2 * OUTPUT_KEPT)).slice(-OUTPUT_KEPT);
      if (end.ended === 'exit') for (const { title } of end.left) left.add(title);
      if (end.ended === 'exit' && end.code === 0) {
        counts.passing++;
        if (counts.failing === 0) output = text;
      } else if (
        end.ended === 'not-started' ||
        (end.ended === 'exit' && CANNOT_TEST.has(end.code ?? -1))
      ) {
        counts.invalid++;
        reason =
          end.ended === 'not-started'
            ? end.reason
            : `it ended with ${end.code ?? '?'}: ${lastLine(text)}`;
      } else {
        // Also one that hangs, or that a signal ended.
        counts.failing++;
        output = text;
      }
    }
  } finally {
    signals.close();
  }
  return { ...counts, output, reason, left: [...left], isInterrupted: abort.signal.aborted };
}

/** `3 of 20 runs failed`, or `0 of 20 runs failed (at most 14 %, 95 %)`. */
export function trialsText(trials: Trials): string {
  const { failing, passing, invalid, reason, left } = trials;
  const n = failing + passing;
  const untested =
    invalid === 0 ? '' : `; ${invalid} could not be tested${reason === null ? '' : ` (${reason})`}`;
  const more = left.length > 1 ? ` and ${left.length - 1} more` : '';
  const ended = left[0] === undefined ? '' : `; left running, and ended: ${left[0]}${more}`;
  const rest = `${untested}${ended}`;
  if (n === 0) return `not tested${rest}`;
  const bound =
    failing > 0
      ? ''
      : ` (at most ${Math.ceil(exactUpperBound(0, n) * 100)} % with 95 % confidence)`;
  return `${failing} of ${n} runs failed${bound}${rest}`;
}

const lastLine = (text: string): string => printable(text.trimEnd().split('\n').at(-1) ?? '', 160);
