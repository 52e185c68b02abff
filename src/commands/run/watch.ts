import { basename } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { monotonicNow } from '../../core/clock.ts';
import { TraceError } from '../../core/errors.ts';
import type { Finding, Seconds } from '../../core/types.ts';
import { detectRuntime } from '../../platform/runtime.ts';
import { describeEnd, type StartedCommand } from '../../platform/started-command.ts';
import { formatSeconds } from '../../core/units.ts';
import { runPlan } from '../attach/attach.ts';
import { withGpus } from '../attach/gpu.ts';
import { NodeInspector } from '../attach/inspect.ts';
import type { AttachOptions } from '../attach/options.ts';
import { openShared, probeTarget } from '../attach/probe.ts';
import type { AttachScreen } from '../attach/screen.ts';
import { openTree } from '../attach/tree.ts';
import type { Environment } from '../command-line/command.ts';
import { reportOfNothing, withExactEnd } from './end.ts';
import type { RunOptions } from './options.ts';
import { Readiness } from './ready.ts';
import type { Watched } from '../watching/watch.ts';

/** Watching a command from its start to its end: as attach does, with what only its parent knows. */

/** What came of watching. */
export interface CommandOutcome {
  readonly findings: readonly Finding[];
  /** What kept us from watching, already said when it is a TraceError; null when nothing did. */
  readonly failure: unknown;
}

interface Context {
  readonly options: RunOptions;
  readonly environment: Environment;
  readonly screen: AttachScreen;
}

/** Never rejects: whatever becomes of the watching, the command goes on. */
export async function watchCommand(
  command: StartedCommand,
  context: Context,
): Promise<CommandOutcome> {
  try {
    return { findings: await watchIt(command, context), failure: null };
  } catch (failure) {
    const { environment, options } = context;
    const { end } = command;
    if (!(failure instanceof TraceError)) return { findings: [], failure };
    if (end !== null) {
      // Too quick for anything to be seen: nothing was found, and nothing is wrong with that.
      if (!options.watch.quiet)
        environment.stderr.write(
          `trace: the command ${describeEnd(end)} after ${formatSeconds(end.after)}, before anything was observed\n`,
        );
      // Who asked for a document is not left with none.
      const isShown = failure.code === 'ERR_TARGET_GONE';
      if (!isShown && (options.report !== null || options.watch.format === 'json'))
        context.screen.showReport(reportOfNothing(command, end));
      return { findings: [], failure: null };
    }
    environment.stderr.write(`trace: the command is not watched: ${failure.message}\n`);
    return { findings: [], failure };
  }
}

async function watchIt(command: StartedCommand, context: Context): Promise<readonly Finding[]> {
  const { options, environment, screen } = context;
  const { pid } = command.target;
  const watchOptions: AttachOptions = { ...options.watch, target: { by: 'pid', pid } };
  const readiness = openReadiness(command, context);
  await untilRecognised(command);
  const inspector = new NodeInspector(watchOptions, environment, screen);
  // Of the command itself we are told the end; of what it starts, it is.
  const shared = openShared();
  try {
    const plan = await probeTarget(watchOptions, inspector, shared);
    const tree = await openTree(plan, { options: watchOptions, environment, screen, shared });
    const limit = endOfWatching(command, options.watch.duration);
    try {
      // What else is not seen may begin yet: the report says it, when it is known.
      for (const message of plan.messages) screen.note(message);
      const seen = await withGpus(plan, { tree, options: watchOptions, environment });
      const collectors = seen.collectors.map((one) =>
        one.name === 'process' ? withExactEnd(one, command) : one,
      );
      const { findings } = await runPlan(
        { plan: { ...seen, collectors }, tree },
        {
          options: watchOptions,
          environment,
          screen,
          inspector,
          stops: { listen: () => () => {} },
          verb: 'run',
          name: basename(options.command[0] ?? ''),
          until: limit.reached,
          sources: readiness === null ? [] : [readiness],
        },
      );
      return findings;
    } finally {
      limit.close();
      await tree.close();
      await plan.sampler?.close();
    }
  } finally {
    readiness?.close();
    shared.exits.close();
    await inspector.close();
  }
}

/**
 * A program that is no server by itself may be about to become one: `env`, a shell with `exec`, an interpreter named by a script's first
 * line. It is waited for this long; a later change is noticed too, within a second.
 */
const EXEC_WAIT: Seconds = 0.25;
const EXEC_POLL: Seconds = 0.01;

async function untilRecognised(command: StartedCommand): Promise<void> {
  const until = monotonicNow() + EXEC_WAIT;
  while (monotonicNow() < until && command.end === null) {
    const { name } = detectRuntime(command.target.pid);
    if (name !== 'native' && name !== 'unknown') return;
    await sleep(EXEC_POLL * 1e3);
  }
}

/** When watching ends: with the command, or after a time. */
function endOfWatching(
  command: StartedCommand,
  duration: Seconds | null,
): { readonly reached: Promise<Watched['reason']>; close(): void } {
  const cancel = new AbortController();
  const ended = command.ended.then(() => 'target-gone' as const);
  if (duration === null) return { reached: ended, close() {} };
  const over = sleep(duration * 1e3, 'duration' as const, { signal: cancel.signal });
  // Cancelled when the command ended first, and the race is over then.
  over.catch(() => {});
  return { reached: Promise.race([ended, over]), close: () => cancel.abort() };
}

function openReadiness(command: StartedCommand, { options, screen }: Context): Readiness | null {
  if (options.readyUrl === null) return null;
  return new Readiness(options.readyUrl, {
    startedAt: command.startedAt,
    onReady: (after) => screen.note(`ready ${formatSeconds(after)} after its start`),
    onNever: (why) => screen.problem(why),
  });
}
