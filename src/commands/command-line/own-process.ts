import { EXIT } from '../../core/exit-code.ts';
import { ignoreOpeningSignal, prepareForHangUp } from '../../platform/own-signals.ts';

/** What trace as a process of its own wants of Node; once, before anything is done. */
export function prepareProcess(): void {
  ignoreOpeningSignal();
  prepareForHangUp();
  // What nobody catches is a bug in trace. Node would end with 1: something was found.
  process.on('uncaughtExceptionMonitor', () => {
    process.once('exit', () => (process.exitCode = EXIT.internal));
  });
}
