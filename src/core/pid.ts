import { TraceError } from './errors.ts';
import { EXIT } from './exit-code.ts';
import { printable } from './text.ts';

/** PID_MAX_LIMIT of 64-bit Linux (include/linux/threads.h): no pid is larger, whatever kernel.pid_max says. */
const PID_LIMIT = 4_194_304;

/** The pid that a word of the command line or a caller names: 1 to 4194304 in decimal, else ERR_TARGET_PID_INVALID. */
export function parsePid(given: string | number): number {
  const text = String(given);
  const pid = /^\d{1,7}$/.test(text) ? Number(text) : 0;
  if (pid >= 1 && pid <= PID_LIMIT) return pid;
  const limit = /^\d+$/.test(text) ? ` from 1 to ${PID_LIMIT}` : '';
  throw new TraceError(
    'ERR_TARGET_PID_INVALID',
    `expected a process id${limit}, got '${printable(text, 60)}'`,
    {
      exitCode: EXIT.usage,
      remedy:
        'Give a number such as 4312, or find the process by its title: trace attach --match <pattern>',
    },
  );
}
