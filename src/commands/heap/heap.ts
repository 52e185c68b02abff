import { setTimeout as sleep } from 'node:timers/promises';
import { anchoredClock, takeAnchor } from '../../core/clock.ts';
import { TraceError, usageError } from '../../core/errors.ts';
import { EXIT, type ExitCode } from '../../core/exit-code.ts';
import { heapGrowth } from '../../core/heap-growth.ts';
import type { HeapLook } from '../../core/heap-look.ts';
import type { Clock, TargetInfo } from '../../core/types.ts';
import { readStat } from '../../platform/proc.ts';
import { detectRuntime } from '../../platform/runtime.ts';
import { findTarget, targetInfo } from '../../platform/target.ts';
import { heapVerdict, renderHeap, renderHeapJson } from '../../report/heap.ts';
import { nodeHeapVerdict, renderNodeHeap, renderNodeHeapJson } from '../../report/node-heap.ts';
import { decideSurface, type Surface } from '../../report/style.ts';
import type { Command, CommandContext, Environment } from '../command-line/command.ts';
import { toolVersion } from '../version.ts';
import { StopSignals } from '../watching/stop-signals.ts';
import { compareLiveObjects } from './live-objects.ts';
import type { NodeTarget } from './open-node.ts';
import { writeHeapSnapshot } from './snapshot.ts';
import { type HeapOptions, heapUsage, parseHeapOptions } from './options.ts';
import { type HeapLooker, openHeap } from './open.ts';
import { sampleNodeHeap } from './node.ts';

/** `trace heap`: two looks at the objects of a process, and what grew between them. */
export const heapCommand: Command = { ...heapUsage, run };

async function run({ values, positionals, environment }: CommandContext): Promise<ExitCode> {
  const options = parseHeapOptions(values, positionals);
  const found = findTarget({ pid: options.pid });
  const runtime = detectRuntime(options.pid);
  if (options.snapshot !== null && runtime.name !== 'node')
    throw usageError(`pid ${options.pid} has no heap of V8's`, 'Leave --heap-snapshot away.');
  if (options.liveObjects && runtime.name !== 'node')
    throw usageError(`pid ${options.pid} has no heap of V8's`, 'Leave --live-objects away.');
  const info = targetInfo(found, runtime);
  const { stdout, env } = environment;
  const surface = decideSurface({
    env,
    isTTY: stdout.isTTY,
    columns: stdout.columns,
    noColor: values['no-color'] === true,
  });
  const stops = new StopSignals(environment);
  const stop = new AbortController();
  const release = stops.listen(() => stop.abort());
  try {
    const watch = { clock: anchoredClock(takeAnchor()), signal: stop.signal };
    const how: Output = { info, options, surface };
    const text =
      runtime.name === 'node'
        ? await ofNode({ process: found.target, runtime, options, environment }, { watch, how })
        : await ofPython(await openHeap(found.target, runtime, watch.clock), {
            watch,
            how,
            onResult: environment.onResult,
          });
    if (text === null) return stops.received === 'SIGTERM' ? EXIT.terminated : EXIT.interrupted;
    stdout.write(text);
    return EXIT.ok;
  } finally {
    release();
    stops.close();
  }
}

interface Output {
  readonly info: TargetInfo;
  readonly options: HeapOptions;
  readonly surface: Surface;
}

interface Watched {
  readonly watch: { readonly clock: Clock; readonly signal: AbortSignal };
  readonly how: Output;
}

/** What is said of a Node process; null when it was stopped before. */
async function ofNode(target: NodeTarget, { watch, how }: Watched): Promise<string | null> {
  const { snapshot, liveObjects } = target.options;
  if (snapshot !== null) return writeHeapSnapshot(target, snapshot);
  if (liveObjects) return compareLiveObjects(target, watch.signal);
  const result = await sampleNodeHeap(target, watch);
  if (result === null) return null;
  const { info, options, surface } = how;
  const startedAt = result.looks[0].at;
  const report = { target: info, startedAt, ...result, rows: options.rows };
  target.environment.onResult?.({ summary: nodeHeapVerdict(result.growth), link: null });
  return options.format === 'json'
    ? renderNodeHeapJson(report, toolVersion())
    : renderNodeHeap(report, surface);
}

/** What is said of a Python process; null when it was stopped before. Closes the heap. */
async function ofPython(
  heap: HeapLooker,
  { watch, how, onResult }: Watched & { readonly onResult: Environment['onResult'] },
): Promise<string | null> {
  const { info, options, surface } = how;
  try {
    const looks = await lookTwice(heap, { options, signal: watch.signal });
    if (looks === null) return null;
    const [before, after] = looks;
    const growth = heapGrowth(before, after);
    onResult?.({ summary: heapVerdict(growth), link: null });
    const report = {
      target: info,
      startedAt: before.at,
      before,
      after,
      growth,
      rows: options.rows,
    };
    return options.format === 'json'
      ? renderHeapJson(report, toolVersion())
      : renderHeap(report, surface);
  } finally {
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
