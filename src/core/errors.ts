import { EXIT, type ExitCode } from './exit-code.ts';

/**
 * An expected failure that ends a command. `code` is stable (`ERR_TARGET_NOT_FOUND`), the message is not.
 * Anything else that is thrown is a bug in trace and keeps its stack.
 */
export class TraceError extends Error {
  readonly code: string;
  readonly exitCode: ExitCode;
  /** What to do about it, in the imperative; several lines allowed. */
  readonly remedy: string | null;

  constructor(
    code: string,
    message: string,
    options: { exitCode: ExitCode; remedy?: string; cause?: unknown },
  ) {
    super(message, { cause: options.cause });
    this.name = 'TraceError';
    this.code = code;
    this.exitCode = options.exitCode;
    this.remedy = options.remedy ?? null;
  }
}

/** A mistake on the command line (exit 2). */
export function usageError(message: string, remedy?: string): TraceError {
  return new TraceError('ERR_USAGE', message, {
    exitCode: EXIT.usage,
    ...(remedy === undefined ? {} : { remedy }),
  });
}

/** What the system calls a failure (`ENOENT`); of an error without a code, what it says. */
export function errorCode(error: unknown): string {
  return error instanceof Error && 'code' in error ? String(error.code) : String(error);
}
