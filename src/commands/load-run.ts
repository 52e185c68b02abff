import type { LoadPlan } from '../load/plan.ts';
import type { Environment } from './command.ts';
import type { LoadRun, LoadRunScreen, LoadSettings } from './load-settings.ts';

/** Running a plan: engine, sinks, what is watched beside it, and the result. */

/**
 * Runs the plan to its end, or to the first stop signal (it then drains; a second one ends at once, a third ends trace). Throws a TraceError
 * when nothing could be sent at all or a folder that the user named cannot be used; trouble beside the requests goes to the screen.
 */
export function runLoad(
  _plan: LoadPlan,
  _settings: LoadSettings,
  _context: { readonly environment: Environment; readonly screen: LoadRunScreen },
): Promise<LoadRun> {
  return Promise.reject(new Error('not there yet'));
}
