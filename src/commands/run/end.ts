import { anchoredClock, takeAnchor } from '../../core/clock.ts';
import { newTraceId } from '../../core/ids.ts';
import { ATTR, EVENT } from '../../core/semconv.ts';
import { printable } from '../../core/text.ts';
import type {
  Attributes,
  Collector,
  Event,
  Observation,
  ProcessTarget,
  Seconds,
} from '../../core/types.ts';
import {
  type CommandEnd,
  describeEnd,
  signalNumber,
  type StartedCommand,
} from '../../platform/started-command.ts';
import { RECORDING_SCHEMA_VERSION } from '../../recording/format.ts';
import { memoryRecording } from '../../recording/memory.ts';
import { buildReport, type Report } from '../../report/report.ts';
import { toolVersion } from '../version.ts';

/** How a command ended, as its parent knows it. */

/** The process collector of a child of ours: how it ended is known from waiting for it, not from what /proc still shows. */
export function withExactEnd(
  collector: Collector<ProcessTarget>,
  command: StartedCommand,
): Collector<ProcessTarget> {
  return {
    ...collector,
    probe: (target) => collector.probe(target),
    async *observe(target, context): AsyncGenerator<Observation> {
      let said = false;
      for await (const observation of collector.observe(target, context)) {
        if (observation.kind === 'event' && observation.name === EVENT.targetExit) {
          said = true;
          yield exitEvent(command, await command.ended, observation);
        } else yield observation;
      }
      if (!said && command.end !== null)
        yield exitEvent(command, command.end, { at: context.clock.now() });
    },
  };
}

function exitEvent(
  { target }: StartedCommand,
  end: CommandEnd,
  seen: { readonly at: Seconds; readonly attributes?: Attributes },
): Event {
  const { code, signal } = end;
  return {
    kind: 'event',
    at: seen.at,
    name: EVENT.targetExit,
    severity: code === 0 ? 'info' : 'warn',
    body: printable(`pid ${target.pid} ${describeEnd(end)}`, 200),
    attributes: {
      ...seen.attributes,
      ...(signal === null
        ? { [ATTR.exitCode]: code ?? 0 }
        : { [ATTR.exitSignal]: signalNumber(signal) }),
    },
  };
}

/** What is reported of a command that ended before anything was observed: that it ran, and how it ended. */
export function reportOfNothing(command: StartedCommand, end: CommandEnd): Report {
  const { pid, startTicks } = command.target;
  const clock = anchoredClock(takeAnchor());
  const endedAt = clock.now();
  const memory = memoryRecording({
    schemaVersion: RECORDING_SCHEMA_VERSION,
    toolVersion: toolVersion(),
    command: 'run',
    startedAt: endedAt - end.after,
    traceId: newTraceId(),
    targets: [
      {
        pid,
        parent: process.pid,
        startTicks,
        runtime: 'unknown',
        runtimeVersion: null,
        title: command.title,
        role: null,
      },
    ],
    collectors: [],
    settings: {},
  });
  memory.write(exitEvent(command, end, { at: endedAt }));
  const view = memory.view({
    endedAt,
    interrupted: false,
    reason: 'target-gone',
    ownCpuRatio: 0,
    startupCpu: 0,
    targetPaused: 0,
    samples: 0,
    late: 0,
    dropped: 0,
  });
  return buildReport(view, [], { recording: null });
}
