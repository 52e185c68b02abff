import { ignoreOpeningSignal, prepareForHangUp } from '../../platform/own-signals.ts';

/** What trace as a process of its own wants of Node; once, before anything is done. */
export function prepareProcess(): void {
  ignoreOpeningSignal();
  prepareForHangUp();
}
