/** The exit codes scripts rely on; the contract is in docs/architecture.md. */
export const EXIT = {
  ok: 0,
  /** A finding of `warning` or above that is not inconclusive, a gate refused, reproduced. */
  finding: 1,
  usage: 2,
  /** Target, endpoint or recording not there, or gone before anything was observed. */
  notFound: 3,
  /** Only with `--require-stacks`. */
  permission: 4,
  unsupported: 5,
  /** The result cannot be trusted: client overloaded, too few samples. */
  invalid: 6,
  /** A bug in trace. */
  internal: 70,
  interrupted: 130,
  terminated: 143,
} as const;

/** The exit code of a command that trace started, passed on: 0 to 255, with the command's own meaning. */
export type CommandCode = number & { readonly [ofCommand]: true };
declare const ofCommand: unique symbol;

export type ExitCode = (typeof EXIT)[keyof typeof EXIT] | CommandCode;

/** A number that a command ended with, or that a shell would give in its place, as the exit code of trace. */
export function commandCode(code: number): CommandCode {
  return code as CommandCode;
}

/**
 * What a run that a signal stopped ends with, after its partial results. At SIGHUP the run ends as
 * at SIGTERM, and the process by SIGHUP.
 */
export function exitCodeOfStop(signal: 'SIGINT' | 'SIGTERM'): ExitCode {
  return signal === 'SIGINT' ? EXIT.interrupted : EXIT.terminated;
}

/** Highest first: when several hold, the earliest in this list is the exit code. */
const PRECEDENCE: readonly ExitCode[] = [70, 2, 143, 130, 6, 3, 4, 5, 1, 0];

/** The one exit code for everything that was true of a run. An empty list is success. */
export function combineExitCodes(codes: readonly ExitCode[]): ExitCode {
  return PRECEDENCE.find((code) => codes.includes(code)) ?? EXIT.ok;
}
