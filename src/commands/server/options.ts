import type { Seconds } from '../../core/types.ts';
import { usageError } from '../../core/errors.ts';
import type { OptionTable, OptionValues } from '../command-line/command.ts';
import { parseDuration, parseHttpUrl } from '../command-line/parse.ts';

/** What a server says of itself, what a small request to it takes, and the database behind it: flags of attach and run. */

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
  'postgres-url': { type: 'string' },
  'postgres-log': { type: 'string' },
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
  /** The database server behind it, which is asked who waits for whom, and its log. */
  readonly postgres: {
    /** With all that stands in it: never recorded or printed. */
    readonly url: string | null;
    readonly log: string | null;
  };
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
    postgres: { url: parsePostgresUrl(text('postgres-url')), log: text('postgres-log') },
  };
}

/** The value is not repeated: there may be a password in it. */
function parsePostgresUrl(text: string | null): string | null {
  if (text === null) return null;
  const remedy =
    "--postgres-url 'postgres://user@db.example:5432/app', with PGPASSWORD or ~/.pgpass";
  if (!/^postgres(?:ql)?:\/\//.test(text))
    throw usageError('--postgres-url takes a URL that begins with postgres://', remedy);
  try {
    // An empty host is PGHOST's.
    void new URL(text.replace(/^postgres(?:ql)?:\/\/(?=[/?]|$)/, 'postgres://host'));
  } catch {
    throw usageError('--postgres-url: that is not a URL', remedy);
  }
  return text;
}
