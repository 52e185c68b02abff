import { isatty } from 'node:tty';

/** What signals do to trace itself, where what Node does by itself would harm. */

/**
 * Node opens its inspector at SIGUSR1, on loopback: whoever can connect there runs code in the
 * process, which may be root's. Node has no flag against it in all versions that trace runs on.
 */
export function ignoreOpeningSignal(): void {
  process.on('SIGUSR1', () => {});
}

let hasHungUp = false;

/**
 * The terminal was closed, and trace is to end by that, once it has cleaned up: until then further
 * SIGHUPs are not heard. A shell sends one of its own, beside the kernel's.
 */
export function endByHangUp(): void {
  if (hasHungUp) return;
  hasHungUp = true;
  process.on('SIGHUP', () => {});
}

/**
 * Has this process end by SIGHUP where that is what ended it, and where its terminal is gone by the
 * end: Node aborts when it cannot give a terminal its modes back. Once, while the terminal is
 * there.
 */
export function prepareForHangUp(): void {
  const terminals = [0, 1, 2].filter((fd) => isatty(fd));
  process.on('exit', () => {
    // Of one that is gone the kernel says that it is none.
    if (!hasHungUp && terminals.every((fd) => isatty(fd))) return;
    process.removeAllListeners('SIGHUP');
    process.kill(process.pid, 'SIGHUP');
  });
}
