import type { AgentReading, ProfileTurn } from './agent.ts';
import { isRecord } from '../../src/core/record.ts';

/** What the agent answered, checked: it comes from the target. */

/** V8 has 8 to 10 spaces. */
const SPACE_LIMIT = 32;
const PAUSE_LIMIT = 10_000;
const NAME_LIMIT = 64;

/** Null when it is not a reading. */
export function parseReading(value: unknown): AgentReading | null {
  if (!isRecord(value)) return null;
  const { spaces, pauses } = value;
  if (!Array.isArray(spaces) || spaces.length > SPACE_LIMIT) return null;
  if (!Array.isArray(pauses) || pauses.length > PAUSE_LIMIT) return null;
  const parsedSpaces: AgentReading['spaces'][number][] = [];
  for (const space of spaces as readonly unknown[]) {
    if (!isRecord(space) || typeof space['name'] !== 'string') return null;
    const [size, used, available, physical] = numbers(space, [
      'size',
      'used',
      'available',
      'physical',
    ]);
    const name = space['name'].slice(0, NAME_LIMIT);
    parsedSpaces.push({ name, size, used, available, physical });
  }
  const parsedPauses: AgentReading['pauses'][number][] = [];
  for (const pause of pauses as readonly unknown[]) {
    if (!Array.isArray(pause)) return null;
    const [kind, from, duration]: readonly unknown[] = pause;
    if (!isAmount(kind) || !isAmount(from) || !isAmount(duration)) return null;
    parsedPauses.push([kind, from, duration]);
  }
  const [limit, external, malloced, contexts, detachedContexts, now, lost] = numbers(value, [
    'limit',
    'external',
    'malloced',
    'contexts',
    'detachedContexts',
    'now',
    'lost',
  ]);
  return {
    spaces: parsedSpaces,
    pauses: parsedPauses,
    limit,
    external,
    malloced,
    contexts,
    detachedContexts,
    now,
    lost,
  };
}

/** Null when it is not one. */
export function parseProfileTurn(value: unknown): ProfileTurn | null {
  if (!isRecord(value)) return null;
  const { ended, heldMs } = value;
  if (!isAmount(heldMs) || (ended !== null && typeof ended !== 'string')) return null;
  return { ended: ended === null ? null : ended.slice(0, NAME_LIMIT), heldMs };
}

/** The named numbers, 0 where one is missing or negative. */
function numbers<const K extends readonly string[]>(
  record: Readonly<Record<string, unknown>>,
  names: K,
): { -readonly [I in keyof K]: number } {
  return names.map((name) => {
    const value = record[name];
    return isAmount(value) ? value : 0;
  }) as { -readonly [I in keyof K]: number };
}

function isAmount(value: unknown): value is number {
  return typeof value === 'number' && Number.isFinite(value) && value >= 0;
}
