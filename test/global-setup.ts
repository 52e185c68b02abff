import { execFileSync } from 'node:child_process';
import { join } from 'node:path';

const ROOT = join(import.meta.dirname, '..');

/** Builds dist/ once for a whole run, unless the caller says that it just did (`TRACEWRIGHT_BUILT=1`, as .ci/run does). */
export function setup(): void {
  if (process.env['TRACEWRIGHT_BUILT'] === '1') return;
  execFileSync(process.execPath, [join(ROOT, 'node_modules', 'typescript', 'bin', 'tsc')], {
    cwd: ROOT,
    stdio: 'inherit',
  });
}
