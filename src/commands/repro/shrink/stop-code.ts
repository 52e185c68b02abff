import { type ExitCode, exitCodeOfStop } from '../../../core/exit-code.ts';
import type { StopSignals } from '../../watching/stop-signals.ts';

/** What a command that was interrupted ends with; null for one that was not. */
export function stopCode({ received }: StopSignals): ExitCode | null {
  if (received === null) return null;
  return exitCodeOfStop(received);
}
