import { setTimeout as sleep } from 'node:timers/promises';
import { anchoredClock, takeAnchor } from '../../core/clock.ts';
import { TraceError } from '../../core/errors.ts';
import { EXIT, type ExitCode } from '../../core/exit-code.ts';
import { heapGrowth } from '../../core/heap-growth.ts';
import type { HeapLook } from '../../core/heap-look.ts';
import { readStat } from '../../platform/proc.ts';
import { detectRuntime } from '../../platform/runtime.ts';
import { findTarget, targetInfo } from '../../platform/target.ts';
import { renderHeap, renderHeapJson } from '../../report/heap.ts';
import { decideSurface } from '../../report/style.ts';
import type { Command, CommandContext } from '../command-line/command.ts';
import { toolVersion } from '../version.ts';
import { StopSignals } from '../watching/stop-signals.ts';
import { type HeapOptions, heapUsage, parseHeapOptions } from './options.ts';
import { type HeapLooker, openHeap } from './open.ts';

/** `trace heap`: two looks at the objects of a process, and what grew between them. */
export const heapCommand: Command = { ...heapUsage, run };

async function run({ values, positionals, environment }: CommandContext): Promise<ExitCode> {
  const options = parseHeapOptions(values, positionals);
  const found = findTarget({ pid: options.pid });
  const runtime = detectRuntime(options.pid);
  const clock = anchoredClock(takeAnchor());
  const heap = await openHeap(found.target, runtime, clock);
  const stops = new StopSignals(environment);
  const stop = new AbortController();
  const release = stops.listen(() => stop.abort());
  try {
    const looks = await lookTwice(heap, { options, signal: stop.signal });
    if (looks === null) return stops.received === 'SIGTERM' ? EXIT.terminated : EXIT.interrupted;
    const [before, after] = looks;
    const report = {
      target: targetInfo(found, runtime),
      startedAt: before.at,
      before,
      after,
      growth: heapGrowth(before, after),
      rows: options.rows,
    };
    const { stdout, env } = environment;
    stdout.write(
      options.format === 'json'
        ? renderHeapJson(report, toolVersion())
        : renderHeap(
            report,
            decideSurface({
              env,
              isTTY: stdout.isTTY,
              columns: stdout.columns,
              noColor: values['no-color'] === true,
            }),
          ),
    );
    return EXIT.ok;
  } finally {
    release();
    stops.close();
    await heap.close();
  }
}

/** Null when it was stopped in between. */
async function lookTwice(
  heap: HeapLooker,
  { options, signal }: { options: HeapOptions; signal: AbortSignal },
): Promise<readonly [HeapLook, HeapLook] | null> {
  const before = await lookOnce(heap, options.pid);
  await sleep(options.interval * 1e3, undefined, { signal }).catch(() => undefined);
  if (signal.aborted) return null;
  return [before, await lookOnce(heap, options.pid)];
}

async function lookOnce(heap: HeapLooker, pid: number): Promise<HeapLook> {
  const look = await heap.look();
  if (look !== null) return look;
  throw readStat(pid) !== null
    ? new TraceError(
        'ERR_HEAP_UNREADABLE',
        `the lists of objects of pid ${pid} changed faster than they could be read, or are not where CPython has them`,
        { exitCode: EXIT.unsupported, remedy: 'Try again when it does less.' },
      )
    : new TraceError('ERR_TARGET_GONE', `pid ${pid} ended meanwhile`, { exitCode: EXIT.notFound });
}
