import { readdirSync } from 'node:fs';
import { join } from 'node:path';
import { usageError } from '../../core/errors.ts';
import { EXIT, type ExitCode } from '../../core/exit-code.ts';
import { maskArguments, maskText } from '../../core/secrets/mask.ts';
import { printable, quoteForShell } from '../../core/text.ts';
import type { Session } from '../../core/session.ts';
import { formatSeconds } from '../../core/units.ts';
import { type Backend, BACKENDS, backendsIn } from '../../session/backends.ts';
import { attachCommand } from '../attach/attach.ts';
import { attachUsage } from '../attach/options.ts';
import { parseCommandLine } from '../command-line/command-line.ts';
import type {
  Command,
  CommandContext,
  CommandResult,
  Environment,
  Usage,
} from '../command-line/command.ts';
import { parseCount, parseDuration } from '../command-line/parse.ts';
import { StopSignals } from '../watching/stop-signals.ts';
import { BackendServer } from './backend-server.ts';
import { SessionLog } from './log.ts';
import { chooseRebuild, stepText } from './rebuild.ts';
import { answer, openSession, SESSION_HELP, SESSION_OPTIONS, textOf } from './opening.ts';

const PORT = 8000;
const READY_LIMIT = '600s';
const WATCHED = '30s';

const help = `trace session backend - start the server of a session, ask it, watch it

Usage:
  trace session backend [vllm|sglang|trtllm|dynamo|llama.cpp] [options]
      -- <launch command>

Starts the command, waits until /v1/models answers, sends one chat request and
prints the answer, watches the server for a while, and stops it with everything
it started. What it prints goes into a file beside the session. Without a name
the one that the command or the report speaks of is taken, and their words are
shown; in a checkout of Dynamo its launch scripts are listed.

Options:
      --port <n>              where it listens (default 8000)
      --ready-timeout <time>  until it has to answer (default 600s)
  -d, --duration <time>       how long it is watched (default 30s)
      --rebuild               make the backend anew from its checkout first: by
                              the configuration's commands, the notes' or the
                              project's documented ones; shown, then asked for
      --yes                   run them without asking
${SESSION_HELP}
Exit codes:
  0    it answered, and nothing was found
  1    something was found, or it answered with an error
  2    wrong usage, or which backend is not clear
  3    it ended before it answered, or did not answer in time
  70   a bug in trace
  130  Ctrl-C; the server is stopped all the same

Examples:
  trace session backend -- vllm serve Qwen/Qwen3-0.6B
  trace session backend llama.cpp --port 8080 -- ./serve.sh

More: docs/session.md
`;

/** `trace session backend` as its help shows it. */
export const sessionBackendUsage: Usage = {
  name: 'session backend',
  summary: 'Start the server of a session, ask it, watch it',
  help,
  options: {
    ...SESSION_OPTIONS,
    port: { type: 'string' },
    'ready-timeout': { type: 'string' },
    duration: { type: 'string', short: 'd' },
    rebuild: { type: 'boolean' },
    yes: { type: 'boolean' },
  },
  takesCommand: 'optional',
  completes: { argument: BACKENDS, values: { dir: 'folder' } },
};

/** `trace session backend`. */
export const sessionBackendCommand: Command = { ...sessionBackendUsage, run };

async function run(context: CommandContext): Promise<ExitCode> {
  const { values, command, environment } = context;
  const { cwd, stderr } = environment;
  const opened = openSession(context);
  const { backend, because } = chooseBackend(context, opened.store.read(opened.file));
  if (command.length === 0) throw usageError('which command starts it?', launchHint(backend, cwd));
  const port = parseCount(textOf(values, 'port') ?? String(PORT), {
    flag: '--port',
    least: 1,
    most: 65_535,
  });
  const limits = { bare: 's', least: 0.1, most: 86_400 } as const;
  const ready = parseDuration(textOf(values, 'ready-timeout') ?? READY_LIMIT, {
    flag: '--ready-timeout',
    ...limits,
  });
  const duration = textOf(values, 'duration') ?? WATCHED;
  parseDuration(duration, { flag: '--duration', ...limits });
  if (values['quiet'] !== true) stderr.write(`trace: ${backend}${because}\n`);
  const rebuild = values['rebuild'] === true ? await chooseRebuild(backend, context) : null;
  const signals = new StopSignals(environment);
  const log = join(opened.store.folder, `${opened.file.slug}-backend.log`);
  const server = new BackendServer({ cwd, env: environment.env, log, port });
  signals.listen(() => server.interrupt());
  const say = (line: string): void => {
    if (values['quiet'] !== true) stderr.write(`trace: ${line}\n`);
  };
  const shown = maskArguments(command).map(quoteForShell).join(' ');
  const note = (found: string): Promise<void> =>
    opened.store.update(opened.file, (document) => {
      document.append('evidence', {
        timestamp: new Date().toISOString(),
        checked: `backend ${backend}: ${shown}`,
        found,
        link: log,
      });
    });
  try {
    for (const { folder, command: step } of rebuild?.steps ?? [])
      await server.runFirst(step, join(cwd, folder), say);
    if (rebuild !== null)
      await note(`rebuilt, ${rebuild.origin}: ${rebuild.steps.map(stepText).join('; ')}`);
    const pid = await server.start(command, { limit: ready, say });
    const said = await server.ask();
    await note(
      `answered after ${formatSeconds(server.readyAfter)} as ${printable(said.model, 120)}: ${printable(said.text, 300)}`,
    );
    const answered = printable(maskText(said.text), 2000);
    environment.stdout.write(`${printable(said.model, 120)}: ${answered}\n`);
    const code = await watch(pid, duration, { context, signals });
    if (signals.received !== null) return EXIT.interrupted;
    answer(context, 'backend', opened, [`watched for ${duration}; stopped`, log]);
    return said.isError ? EXIT.finding : code;
  } catch (error) {
    if (signals.received !== null) return EXIT.interrupted;
    await note(error instanceof Error ? error.message : String(error));
    throw error;
  } finally {
    signals.close();
    await server.stop();
  }
}

/** Watches the server as `trace attach` does, into the session. */
async function watch(
  pid: number,
  duration: string,
  { context, signals }: { readonly context: CommandContext; readonly signals: StopSignals },
): Promise<ExitCode> {
  const { store, file } = openSession(context);
  const args = [String(pid), '-d', duration, '--session', file.slug];
  const parsed = parseCommandLine(attachUsage, args);
  const environment: Environment = {
    ...context.environment,
    // A signal that came before it listens was meant for it, too.
    onStop: (stop) => {
      const { received } = signals;
      if (received !== null) setImmediate(() => stop(received));
      return context.environment.onStop(stop);
    },
  };
  const log = SessionLog.open(['attach', ...args], parsed.values, environment, store);
  const results: CommandResult[] = [];
  const onResult = (result: CommandResult): number => results.push(result);
  try {
    return await attachCommand.run({ ...parsed, environment: { ...environment, onResult } });
  } finally {
    await log.write(results);
  }
}

/** The one that is named, else the one that the command or the report speaks of, with their words. */
function chooseBackend(
  { positionals, command }: CommandContext,
  session: Session,
): { readonly backend: Backend; readonly because: string } {
  const [name] = positionals;
  const named = BACKENDS.find((one) => one === name);
  if (named !== undefined) return { backend: named, because: '' };
  if (name !== undefined)
    throw usageError(`no backend ${printable(name, 40)}`, `One of ${BACKENDS.join(', ')}`);
  const [byCommand] = backendsIn(command.join(' '));
  if (byCommand !== undefined)
    return {
      backend: byCommand.backend,
      because: `: the command says "${printable(byCommand.quote, 80)}"`,
    };
  const report = [session.trigger, ...Object.values(session.symptoms)].join('\n');
  const [first, second] = backendsIn(report);
  if (first === undefined) throw usageError('which backend?', `One of ${BACKENDS.join(', ')}`);
  if (second !== undefined && second.times === first.times) {
    const quotes = [first, second].map(
      ({ backend, quote }) => `${backend} ("${printable(quote, 80)}")`,
    );
    throw usageError(
      `which backend? The report speaks of ${quotes.join(' and ')}`,
      'Name one of them.',
    );
  }
  return { backend: first.backend, because: `: the report says "${printable(first.quote, 80)}"` };
}

/** The launch scripts of a checkout of Dynamo that stands here. */
function launchHint(backend: Backend, cwd: string): string {
  const folder = join('examples', 'backends', backend, 'launch');
  try {
    const scripts = readdirSync(join(cwd, folder)).filter((name) => name.endsWith('.sh'));
    if (scripts.length > 0)
      return scripts
        .slice(0, 20)
        .map(
          (name) => `trace session backend ${backend} -- bash ${quoteForShell(join(folder, name))}`,
        )
        .join('\n');
  } catch {
    // No checkout of Dynamo.
  }
  return `trace session backend ${backend} -- <launch command>`;
}
