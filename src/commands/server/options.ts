import type { Seconds } from '../../core/types.ts';
import { usageError } from '../../core/errors.ts';
import type { OptionTable, OptionValues } from '../command-line/command.ts';
import { parseDuration, parseHttpUrl } from '../command-line/parse.ts';

/** What a server says of itself, and what a small request to it takes: flags of attach and run. */

/** As `trace load` has it, and Prometheus at its finest. */
const DEFAULT_METRICS_INTERVAL: Seconds = 1;
const METRICS_BOUNDS = { least: 0.1, most: 3600 } as const;
/** Seldom enough that one request of a few tokens is no load. */
const DEFAULT_PROBE_INTERVAL: Seconds = 5;
const PROBE_BOUNDS = { least: 1, most: 3600 } as const;

export const SERVER_OPTIONS: OptionTable = {
  'metrics-url': { type: 'string' },
  'metrics-interval': { type: 'string' },
  metrics: { type: 'boolean' },
  'no-metrics': { type: 'boolean' },
  'probe-url': { type: 'string' },
  'probe-interval': { type: 'string' },
};

export interface ServerOptions {
  readonly metrics: {
    /** Null: looked for on the target's own ports. */
    readonly url: string | null;
    /** Which targets are asked: `known` inference servers, `any` program, or none. */
    readonly find: 'known' | 'any' | 'never';
    readonly every: Seconds;
  };
  /** Sends a small request now and then; null: sends nothing. */
  readonly probe: { readonly url: string; readonly every: Seconds } | null;
}

export function parseServerOptions(values: OptionValues): ServerOptions {
  const text = (name: string): string | null => {
    const value = values[name];
    return typeof value === 'string' ? value : null;
  };
  const url = text('metrics-url');
  const isWanted = values['metrics'] === true;
  if (values['no-metrics'] === true) {
    for (const flag of ['metrics', 'metrics-url', 'metrics-interval']) {
      if (values[flag] !== undefined)
        throw usageError(`--no-metrics and --${flag} contradict each other`, 'Give one of them.');
    }
  }
  const every = text('metrics-interval');
  const probe = text('probe-url');
  const probeEvery = text('probe-interval');
  if (probeEvery !== null && probe === null)
    throw usageError('--probe-interval needs --probe-url: it says how often that is asked');
  return {
    metrics: {
      url: url === null ? null : parseHttpUrl(url, '--metrics-url'),
      find: values['no-metrics'] === true ? 'never' : isWanted ? 'any' : 'known',
      every:
        every === null
          ? DEFAULT_METRICS_INTERVAL
          : parseDuration(every, { flag: '--metrics-interval', bare: 's', ...METRICS_BOUNDS }),
    },
    probe:
      probe === null
        ? null
        : {
            url: probe,
            every:
              probeEvery === null
                ? DEFAULT_PROBE_INTERVAL
                : parseDuration(probeEvery, {
                    flag: '--probe-interval',
                    bare: 's',
                    ...PROBE_BOUNDS,
                  }),
          },
  };
}
