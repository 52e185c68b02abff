import { readdirSync } from 'node:fs';
import { errorCode, TraceError } from '../core/errors.ts';
import { EXIT } from '../core/exit-code.ts';
import { readProc } from './proc.ts';

/** How many files this process may have open at once, and has: each socket is one. */

/**
 * Null where there is no limit, or it cannot be read. Node has raised it to the hard one as it
 * started.
 */
export function descriptorLimit(
  limits: string | null = readProc('/proc/self/limits'),
): number | null {
  const value = /^Max open files\s+(\d+)/m.exec(limits ?? '')?.[1];
  return value === undefined ? null : Number(value);
}

/** How many it has open now. */
export function openDescriptors(): number {
  try {
    // Without the one that reads the folder.
    return readdirSync('/proc/self/fd').length - 1;
  } catch {
    return 0;
  }
}

/**
 * What is said where there are too few; the remedy says how many would do, and what else would
 * (`or`).
 */
export function tooFewDescriptors(message: string, needed: number, or: string = ''): TraceError {
  return new TraceError('ERR_TOO_FEW_DESCRIPTORS', message, {
    exitCode: EXIT.usage,
    remedy: `Raise the limit before (ulimit -n ${needed}; where that is refused, as root)${or}.`,
  });
}

/** Node has some 25 of its own; threads, a recording and what is read of a process take 60 more. */
const LEAST = 96;

/** Throws a TraceError where there are too few for trace itself, whatever it is to do. */
export function requireDescriptors(limit: number | null = descriptorLimit()): void {
  if (limit === null || limit >= LEAST) return;
  throw tooFewDescriptors(`trace needs ${LEAST} open files, and may have ${limit}`, 1024);
}

/** An error that came of a lack of descriptors, as what a user can mend; null for any other. */
export function lackOfDescriptors(error: unknown): TraceError | null {
  if (!(error instanceof Error)) return null;
  if (!/\bE[MN]FILE\b/.test(`${errorCode(error)} ${error.message}`))
    return lackOfDescriptors(error.cause);
  const limit = descriptorLimit();
  const most = limit === null ? '' : `, and trace may have ${limit}`;
  return tooFewDescriptors(
    `no further file could be opened: too many are open${most}`,
    2 * (limit ?? 1024),
  );
}
