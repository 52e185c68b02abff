import { setTimeout as sleep } from 'node:timers/promises';
import { printable } from '../../../core/text.ts';
import type { Seconds } from '../../../core/types.ts';
import { formatSeconds } from '../../../core/units.ts';
import { collectorFacts } from './collectors.ts';
import type { EnvironmentFact, Surroundings } from './fact.ts';
import { gitFacts } from './git.ts';
import { gpuFacts } from './gpus.ts';
import { machineFacts } from './machine.ts';
import { runtimeFacts } from './runtimes.ts';

/** Where a session takes place: what a reader of it, today or in a month, would have to ask for. No variable of the environment is shown. */

/** All parts run side by side; none may hold the start of a session up. */
const PART_LIMIT: Seconds = 3;
const VALUE_LIMIT = 400;

interface Part {
  /** What it tells of. */
  readonly names: readonly string[];
  look(surroundings: Surroundings): Promise<readonly EnvironmentFact[]>;
}

const PARTS: readonly Part[] = [
  { names: ['gpus', 'gpu_driver', 'gpu_mig'], look: gpuFacts },
  { names: ['kernel', 'distribution', 'container', 'memory', 'disk'], look: machineFacts },
  { names: ['python', 'packages', 'cuda', 'node'], look: runtimeFacts },
  { names: ['git_commit', 'git_dirty'], look: gitFacts },
  { names: ['collectors'], look: collectorFacts },
];

/** Never throws, and takes at most {@link PART_LIMIT}: what is late or fails is absent with its reason. */
export async function discoverEnvironment(
  surroundings: Surroundings,
  parts: readonly Part[] = PARTS,
  limit: Seconds = PART_LIMIT,
): Promise<readonly EnvironmentFact[]> {
  const cancel = new AbortController();
  const late = sleep(limit * 1e3, null, { signal: cancel.signal }).catch(() => null);
  const found = await Promise.all(
    parts.map(async (part) => {
      try {
        const facts = await Promise.race([part.look(surroundings), late]);
        return facts ?? absent(part.names, `not told within ${formatSeconds(limit)}`);
      } catch (error) {
        return absent(part.names, error instanceof Error ? error.message : String(error));
      }
    }),
  );
  cancel.abort();
  return found.flat().map(({ name, value, reason }) => ({
    name,
    value: value === null ? null : printable(value, VALUE_LIMIT),
    reason: reason === null ? null : printable(reason, VALUE_LIMIT),
  }));
}

function absent(names: readonly string[], reason: string): readonly EnvironmentFact[] {
  return names.map((name) => ({ name, value: null, reason }));
}
