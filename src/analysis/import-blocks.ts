import type { Frame, Ratio, Seconds } from '../core/types.ts';
import type { WeightedStack } from '../core/place.ts';

/**
 * Blocks in which a module was imported on a running loop. A module is imported once in a process: such a block does not come again, so unless it is
 * long it is a note and not a fault. (An import that fails is tried anew each time, which is why they have to lie close together.)
 */

/** The mechanism of such a block. */
export const IMPORT = 'import';
/** Of the stacks of a block: the rest is what the imported module's own code called. */
const IMPORT_SHARE: Ratio = 0.5;
/** First requests to several routes come within seconds of each other. */
export const IMPORT_WITHIN: Seconds = 10;
/** CPython's import system, as it names its own code. */
const IMPORTS = /^<frozen importlib\._bootstrap(?:_external)?>$/;
/** What runs a loop of asyncio: further out than the import, or the whole program is run by an import. */
const RUNS_LOOP = /\/asyncio\/(?:events|base_events|runners)\.py$/;

/** Whether most of some stacks are within an import that began on the loop. */
export function isImport(stacks: readonly WeightedStack[]): boolean {
  const all = stacks.reduce((sum, { weight }) => sum + weight, 0);
  const importing = stacks
    .filter(({ frames }) => importsOnLoop(frames))
    .reduce((sum, { weight }) => sum + weight, 0);
  return all > 0 && importing >= all * IMPORT_SHARE;
}

function importsOnLoop(frames: readonly Frame[]): boolean {
  const first = frames.findIndex(({ file }) => IMPORTS.test(file));
  return first !== -1 && frames.slice(first).some(({ file }) => RUNS_LOOP.test(file));
}
