/** What signals do to trace itself, where what Node does by itself would harm. */

/**
 * Node opens its inspector at SIGUSR1, on loopback: whoever can connect there runs code in the process,
 * which may be root's. Node has no flag against it in all versions that trace runs on.
 */
export function ignoreOpeningSignal(): void {
  process.on('SIGUSR1', () => {});
}
