import type { TriggerCondition } from '../../analysis/trigger.ts';
import { usageError } from '../../core/errors.ts';
import { printable } from '../../core/text.ts';
import type { Seconds } from '../../core/types.ts';
import type { OptionTable, OptionValues } from '../command-line/command.ts';
import { writeDuration } from '../../core/duration.ts';
import { parseCount, parseDuration } from '../command-line/parse.ts';
import { parseTrigger } from './trigger-parse.ts';

/** A minute: what led to the event, and how it went on. */
const DEFAULT_STRETCH: Seconds = 30;
/** What stands before is kept in memory; what comes after on disk. */
const BEFORE_BOUNDS = { least: 0, most: 600 } as const;
const AFTER_BOUNDS = { least: 1, most: 600 } as const;
const COOLDOWN_BOUNDS = { least: 0, most: 7 * 86_400 } as const;
/** A recording of a minute is about 1 MB. */
const DEFAULT_MOST = 10;
const MOST_BOUNDS = { least: 1, most: 10_000 } as const;

/** The flags of the flight recorder. */
export const TRIGGER_OPTIONS: OptionTable = {
  trigger: { type: 'string', multiple: true },
  'trigger-before': { type: 'string' },
  'trigger-after': { type: 'string' },
  'trigger-max': { type: 'string' },
  'trigger-cooldown': { type: 'string' },
};

/** What a flight recorder waits for, and how much it writes. */
export interface TriggerOptions {
  /** Any of them fires. */
  readonly conditions: readonly TriggerCondition[];
  readonly before: Seconds;
  readonly after: Seconds;
  /** Recordings written at most; later events are counted. */
  readonly most: number;
  /** For so long after a recording has ended no other begins. */
  readonly cooldown: Seconds;
}

/** Null without `--trigger`. Throws a usage error that names what came. */
export function parseTriggerOptions(values: OptionValues): TriggerOptions | null {
  const expressions = [values['trigger'] ?? []].flat().map(String);
  const text = (name: string): string | undefined => {
    const value = values[name];
    return typeof value === 'string' ? value : undefined;
  };
  if (expressions.length === 0) {
    const lonely = Object.keys(TRIGGER_OPTIONS).find((name) => values[name] !== undefined);
    if (lonely === undefined) return null;
    throw usageError(
      `--${lonely} says how a --trigger is recorded, and there is none`,
      "Give --trigger too, for example --trigger 'delay>200ms'.",
    );
  }
  for (const flag of ['no-recording', 'force', 'raw', 'max-size']) {
    if (values[flag] === undefined) continue;
    throw usageError(
      `--trigger and --${flag} contradict each other`,
      '--trigger writes a recording around each event, each into a new folder.',
    );
  }
  const duration = (
    flag: string,
    otherwise: Seconds,
    bounds: { readonly least: Seconds; readonly most: Seconds },
  ): Seconds => {
    const given = text(flag);
    return given === undefined
      ? otherwise
      : parseDuration(given, { flag: `--${flag}`, bare: 's', ...bounds });
  };
  const most = text('trigger-max');
  return {
    conditions: expressions.map(parseTrigger),
    before: duration('trigger-before', DEFAULT_STRETCH, BEFORE_BOUNDS),
    after: duration('trigger-after', DEFAULT_STRETCH, AFTER_BOUNDS),
    most:
      most === undefined
        ? DEFAULT_MOST
        : parseCount(most, { flag: '--trigger-max', ...MOST_BOUNDS }),
    cooldown: duration('trigger-cooldown', 0, COOLDOWN_BOUNDS),
  };
}

/** From how much on a delay is to be seen: the shortest that is waited for, where the user named nothing else. */
export function belowTriggers(
  trigger: TriggerOptions | null,
  lag: { readonly threshold: Seconds; readonly isGiven: boolean; readonly least: Seconds },
): Seconds {
  const delays = (trigger?.conditions ?? []).flatMap((one) => (one.kind === 'delay' ? one : []));
  const [shortest] = delays.toSorted((a, b) => a.limit - b.limit);
  if (shortest === undefined || shortest.limit >= lag.threshold) return lag.threshold;
  const flag = `--trigger '${printable(shortest.expression, 60)}'`;
  if (lag.isGiven)
    throw usageError(
      `${flag} and --lag-threshold ${writeDuration(lag.threshold)} contradict each other`,
      'What lasts less than the threshold is not looked at.',
    );
  if (shortest.limit >= lag.least) return shortest.limit;
  throw usageError(`${flag}: a delay is seen from ${writeDuration(lag.least)} on`);
}
