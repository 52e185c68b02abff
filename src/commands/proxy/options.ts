import { usageError } from '../../core/errors.ts';
import type { Seconds } from '../../core/types.ts';
import {
  COMMON_OPTIONS,
  type OptionTable,
  type OptionValues,
  type Usage,
} from '../command-line/command.ts';
import { parseCount, parseDuration, parseHttpUrl } from '../command-line/parse.ts';

const OPTIONS = {
  target: { type: 'string' },
  port: { type: 'string' },
  unix: { type: 'string' },
  duration: { type: 'string', short: 'd' },
  'capture-content': { type: 'boolean' },
  output: { type: 'string', short: 'o' },
  ...COMMON_OPTIONS,
} as const satisfies OptionTable;

const help = `trace proxy - record the requests that pass to a server

Usage:
  trace proxy --target <url> [options]

Listens on loopback, lets each request and its answer pass as they come
(streams, chunks, trailers, 1xx), and writes one span for each into a recording:
method, path, status, sizes, times, and the first byte of streams. The recording
is traffic that 'trace repro new' can send again.

What was said is not kept, unless --capture-content asks; credentials never are.

Options:
      --target <url>         where requests go: http or https
      --port <n>             port on 127.0.0.1 (default 0: a free one)
      --unix <path>          listen on a Unix socket, for this user alone
  -d, --duration <duration>  end by itself; default until Ctrl-C
      --capture-content      keep headers and bodies, credentials masked
  -o, --output <folder>      where the recording goes (default .tracewright/...)
  -q, --quiet                nothing on stderr but errors
  -v, --verbose              errors with their code and cause
      --no-color             no colour

Exit codes:
  0    ended by --duration, or by Ctrl-C without one
  2    wrong usage, the port or the socket's path is in use
  130  Ctrl-C before --duration was over; what passed is recorded
  143  SIGTERM
  70   a bug in trace

Examples:
  trace proxy --target http://127.0.0.1:8000
  trace proxy --target http://127.0.0.1:8000/v1 --port 8900 --capture-content

More: docs/proxy.md
`;

/** `trace proxy` as its help shows it. */
export const proxyUsage: Usage = {
  name: 'proxy',
  summary: 'Record the requests that pass to a server',
  help,
  options: OPTIONS,
  completes: { argument: 'text', values: { output: 'folder', unix: 'file' } },
};

/** `trace proxy`, decided. */
export interface ProxyCommandOptions {
  readonly target: URL;
  readonly listen: { readonly port: number } | { readonly unix: string };
  /** Null: until a signal. */
  readonly duration: Seconds | null;
  readonly captures: boolean;
  readonly output: string | null;
}

const HIGHEST_PORT = 65_535;
/** A Unix socket's path is at most that long on Linux, with its end (`sun_path`). */
const UNIX_PATH_LIMIT = 107;
const SHORTEST: Seconds = 0.1;
/** A week. */
const LONGEST: Seconds = 604_800;

/** What the flags say. Throws a usage error. */
export function parseProxyOptions(
  values: OptionValues,
  positionals: readonly string[],
): ProxyCommandOptions {
  const text = (name: string): string | null => {
    const value = values[name];
    return typeof value === 'string' ? value : null;
  };
  const given = text('target');
  if (given === null || positionals.length > 0)
    throw usageError(
      given === null ? 'proxy needs --target' : 'proxy takes no argument but its flags',
      'Such as: trace proxy --target http://127.0.0.1:8000',
    );
  const target = new URL(parseHttpUrl(given, '--target'));
  if (target.username !== '' || target.password !== '')
    throw usageError(
      '--target takes no user and password',
      'Clients send their credentials themselves; they are passed on and not recorded.',
    );
  if (target.search !== '' || target.hash !== '')
    throw usageError('--target takes no query', 'Requests bring their own.');
  const [port, unix, duration] = [text('port'), text('unix'), text('duration')];
  if (port !== null && unix !== null)
    throw usageError('--port and --unix contradict each other', 'Give one of them.');
  if (unix !== null && (unix === '' || Buffer.byteLength(unix) > UNIX_PATH_LIMIT))
    throw usageError(`--unix takes a path of at most ${UNIX_PATH_LIMIT} bytes`);
  return {
    target,
    listen:
      unix === null
        ? { port: parseCount(port ?? '0', { flag: '--port', least: 0, most: HIGHEST_PORT }) }
        : { unix },
    duration:
      duration === null
        ? null
        : parseDuration(duration, {
            flag: '--duration',
            bare: 's',
            least: SHORTEST,
            most: LONGEST,
          }),
    captures: values['capture-content'] === true,
    output: text('output'),
  };
}
