import { CGROUP_METRIC, type CgroupMetricKey } from './semconv-cgroup.ts';
import { GPU_METRIC, type GpuMetricKey } from './semconv-gpu.ts';
import { SERVER_METRICS, type ServerMetricName } from './semconv-server.ts';
import type { Metric } from './types.ts';

/**
 * Every attribute and metric name we emit. OpenTelemetry's verbatim (semantic conventions v1.44.0) where one
 * exists, `tracewright.` where none does. It stands in core, not in otel/, because collectors and detectors need the names too
 * (docs/decisions/0002).
 */

export const SEMCONV_SCHEMA_URL = 'https://opentelemetry.io/schemas/1.44.0';

/** @see https://opentelemetry.io/docs/specs/semconv/registry/attributes/ */
export const ATTR = {
  serviceName: 'service.name',
  pid: 'process.pid',
  parentPid: 'process.parent_pid',
  exitCode: 'process.exit.code',
  /** The number of the signal that ended a process. */
  exitSignal: 'tracewright.process.exit.signal',
  /** Why the kernel ended it, and its own words. */
  exitCause: 'tracewright.process.exit.cause',
  kernelLog: 'tracewright.process.exit.kernel_log',
  vpid: 'process.vpid',
  executableName: 'process.executable.name',
  executablePath: 'process.executable.path',
  processTitle: 'process.title',
  processOwner: 'process.owner',
  processCreationTime: 'process.creation.time',
  runtimeName: 'process.runtime.name',
  runtimeVersion: 'process.runtime.version',
  cpuMode: 'cpu.mode',
  diskIoDirection: 'disk.io.direction',
  contextSwitchType: 'process.context_switch.type',
  pagingFaultType: 'system.paging.fault.type',
  threadId: 'thread.id',
  threadName: 'thread.name',
  codeFunctionName: 'code.function.name',
  codeFilePath: 'code.file.path',
  codeLineNumber: 'code.line.number',
  codeStacktrace: 'code.stacktrace',
  startTicks: 'tracewright.process.start_ticks',
  stackId: 'tracewright.stack.id',
  loopKind: 'tracewright.eventloop.kind',
  durationMin: 'tracewright.block.duration_min',
  durationMax: 'tracewright.block.duration_max',
  runQueueWait: 'tracewright.block.run_queue_wait',
  onCpu: 'tracewright.block.on_cpu',
  syscall: 'tracewright.block.syscall',
  blockedOn: 'tracewright.block.on',
  starved: 'tracewright.block.starved',
  open: 'tracewright.block.open',
  basis: 'tracewright.block.basis',
  stackShares: 'tracewright.block.stack_shares',
  mechanism: 'tracewright.block.mechanism',
  /** Of a block in which another thread had the interpreter's lock: `<stack id>=<seconds>`, and beside each the thread's name. */
  holderStacks: 'tracewright.block.gil.holder.stack_shares',
  holderThreads: 'tracewright.block.gil.holder.thread.names',
  codeModule: 'tracewright.code.module',
  placeShare: 'tracewright.code.share',
  /** Spans and events that one stands for, itself included, where a long run holds fewer than there were. */
  compositeCount: 'tracewright.composite.count',
  /** Of all of them: their durations, time on a core and wait for one, in seconds. */
  compositeSum: 'tracewright.composite.sum',
  compositeOnCpu: 'tracewright.composite.on_cpu',
  compositeRunQueueWait: 'tracewright.composite.run_queue_wait',
  /** On a point that is the lowest (`min`) or highest (`max`) of a stretch of which else only the last reading is kept. */
  extreme: 'tracewright.downsampled',
  /** Length of those stretches, in seconds. */
  downsampledWindow: 'tracewright.downsampled.window',
  /** The last segment that is in a file, by its number; its own where nothing was joined. */
  downsampledThrough: 'tracewright.downsampled.through.index',
  /** What was not kept in it although it was thinned out. */
  downsampledDropped: 'tracewright.downsampled.dropped.count',
  activityOnCpu: 'tracewright.activity.on_cpu',
  activityRunQueueWait: 'tracewright.activity.run_queue_wait',
  activityStackSamples: 'tracewright.activity.stack_samples',
  activityIterations: 'tracewright.activity.iterations',
  activityEvents: 'tracewright.activity.events',
  clockMono: 'tracewright.clock.mono',
  clockWall: 'tracewright.clock.wall',
  clockBoot: 'tracewright.clock.boot',
  /** By how much the wall clock was set, in seconds; below 0: back. */
  clockStep: 'tracewright.clock.step',
  urlFull: 'url.full',
  /** From the start of a command to its first answer that said it is ready, in seconds. */
  startupDuration: 'tracewright.run.startup_duration',
  /** Of a service that came back: its process before, how long that had lived, and how long there was none, in seconds. */
  restartPrevious: 'tracewright.restart.previous_pid',
  restartLived: 'tracewright.restart.lived',
  restartAway: 'tracewright.restart.away',
  findingCode: 'tracewright.finding.code',
  findingKind: 'tracewright.finding.kind',
  heapSpace: 'v8js.heap.space.name',
  /** `major`, `minor`, `incremental`, `weakcb`. */
  gcType: 'v8js.gc.type',
  /** `anonymous` (heaps, stacks), `file` (mapped files, the kernel may drop them), `shared` (shared memory, tmpfs). */
  memoryKind: 'tracewright.memory.kind',
  /** `file`, `socket`, `pipe`, or `anon_inode:[eventfd]` and the like. */
  descriptorKind: 'tracewright.descriptor.kind',
  /** As the registry spells them (`close_wait`); `other` for what is not TCP. */
  connectionState: 'network.connection.state',
  /** Address, with the port where it is the service that was called; `other` beyond the first few. */
  socketPeer: 'tracewright.socket.peer',
  /** Of `tracewright.trigger`: the `--trigger` that fired, and what it saw, in base units. */
  triggerExpression: 'tracewright.trigger.expression',
  triggerValue: 'tracewright.trigger.value',
} as const;

/** Span names. */
export const SPAN = {
  /** One loop turn or callback that was seen to last at least the threshold. */
  blocked: 'tracewright.eventloop.blocked',
  /** A stretch of a busy thread whose iteration length could not be read. */
  busy: 'tracewright.eventloop.busy',
} as const;

/** Event (log record) names. */
export const EVENT = {
  runStart: 'tracewright.run.start',
  runEnd: 'tracewright.run.end',
  clockAnchor: 'tracewright.clock.anchor',
  clockStep: 'tracewright.clock.step',
  stack: 'tracewright.stack',
  gap: 'tracewright.gap',
  /** A file of a recording whose readings were thinned out. */
  downsampled: 'tracewright.downsampled',
  finding: 'tracewright.finding',
  snapshot: 'tracewright.snapshot',
  targetExit: 'tracewright.target.exit',
  /** Once in a run of a command: what was asked for readiness answered. */
  ready: 'tracewright.run.ready',
  /** A target that had ended came back under another pid, and is watched again. */
  targetRestart: 'tracewright.target.restart',
  note: 'tracewright.note',
  /** A flight recorder's trigger fired. */
  trigger: 'tracewright.trigger',
  /** Once a second per watched thread that is busy all the time: what it was doing (spin detection). */
  activity: 'tracewright.eventloop.activity',
} as const;

/** What a snapshot is of. */
export const SNAPSHOT = {
  /** A process that joined the run after its start: its TargetInfo. */
  target: 'target',
  /** Where the threads of one process were: `pid`, `threads` [{`tid`, `holdsGil`, `frames`}]. */
  threads: 'threads',
  /** Who waits for what and who has it: a LockLook (lock-look.ts). */
  locks: 'locks',
  /** How often threads that move were found waiting for locks, and who had them: a Contention (contention.ts). */
  contention: 'contention',
  /** The objects of one process while its memory grows: `pid`, and the largest types and containers of a HeapLook. */
  heap: 'heap',
  /** What a Node process allocated and kept, by stack, while it grew (src/core/node-heap-snapshot.ts). */
  nodeHeap: 'node-heap',
  /** The asyncio tasks of one process by coroutine and place (src/core/tasks-snapshot.ts). */
  tasks: 'tasks',
  /** Tasks that wait for a pool's connections, and who may have them (src/core/pool-look.ts). */
  pool: 'pool',
  /** Threads that wait for a pool's connections, and who has these (src/core/thread-pool-look.ts). */
  threadPool: 'thread-pool',
  /** A task that waits for a condition although what it waits for is there (src/core/missed-look.ts). */
  missed: 'missed-wake-up',
} as const;

const gauge = (name: string, unit: string, description: string): Metric => ({
  name,
  unit,
  instrument: 'gauge',
  description,
});
const counter = (name: string, unit: string, description: string): Metric => ({
  name,
  unit,
  instrument: 'counter',
  description,
});
const updown = (name: string, unit: string, description: string): Metric => ({
  name,
  unit,
  instrument: 'updowncounter',
  description,
});

export type MetricKey =
  | 'cpuTime'
  | 'cpuUtilization'
  | 'memoryUsage'
  | 'memoryByKind'
  | 'memoryVirtual'
  | 'swap'
  | 'stopped'
  | 'threads'
  | 'fds'
  | 'diskIo'
  | 'ioSyscalls'
  | 'contextSwitches'
  | 'faults'
  | 'threadCpuUtilization'
  | 'runQueueWait'
  | 'uptime'
  | 'nodeLoopUtilization'
  | 'loopUtilization'
  | 'loopIterations'
  | 'loopEvents'
  | 'loopAge'
  | 'loopDelay'
  | 'descriptors'
  | 'sockets'
  | 'threadsByName'
  | 'asyncioTasks'
  | 'heapUsed'
  | 'heapSize'
  | 'heapAvailable'
  | 'heapPhysical'
  | 'heapLimit'
  | 'heapExternal'
  | 'gcDuration'
  | 'databaseLockWaits';

/** Metrics, by a short key. */
export const METRIC: Readonly<
  Record<MetricKey | ServerMetricName | CgroupMetricKey | GpuMetricKey, Metric>
> = {
  ...CGROUP_METRIC,
  ...SERVER_METRICS,
  ...GPU_METRIC,
  cpuTime: counter('process.cpu.time', 's', 'CPU time by mode'),
  cpuUtilization: gauge('process.cpu.utilization', '1', 'CPU time over wall time, one core = 1'),
  memoryUsage: updown('process.memory.usage', 'By', 'resident set size'),
  memoryByKind: updown('tracewright.process.memory', 'By', 'resident memory by what backs it'),
  memoryVirtual: updown('process.memory.virtual', 'By', 'virtual memory'),
  stopped: gauge(
    'tracewright.process.stopped',
    '1',
    '1 while it is stopped (SIGSTOP, a debugger, or a frozen control group)',
  ),
  swap: updown('tracewright.process.memory.swap', 'By', 'swapped-out anonymous memory (VmSwap)'),
  threads: updown('process.thread.count', '{thread}', 'threads'),
  fds: updown('process.unix.file_descriptor.count', '{file_descriptor}', 'open descriptors'),
  diskIo: counter('process.disk.io', 'By', 'bytes that reached storage, by direction'),
  ioSyscalls: counter('tracewright.process.io.bytes', 'By', 'bytes through read and write calls'),
  contextSwitches: counter('process.context_switches', '{context_switch}', 'by type'),
  faults: counter('process.paging.faults', '{fault}', 'page faults by type'),
  threadCpuUtilization: gauge('tracewright.thread.cpu.utilization', '1', 'CPU by thread'),
  runQueueWait: gauge(
    'tracewright.thread.run_queue.wait',
    '1',
    'share of time a thread was runnable and waited for a core',
  ),
  uptime: gauge('process.uptime', 's', 'seconds since the process started'),
  nodeLoopUtilization: gauge(
    'nodejs.eventloop.utilization',
    '1',
    'share of time not idle in the poll',
  ),
  loopUtilization: gauge(
    'tracewright.eventloop.utilization',
    '1',
    'share of samples in which the loop was not idle in its poll',
  ),
  loopIterations: counter(
    'tracewright.eventloop.iterations',
    '{iteration}',
    'loop iterations, where the loop counts them',
  ),
  loopEvents: counter(
    'tracewright.eventloop.events',
    '{event}',
    'I/O events the loop has processed, where it counts them',
  ),
  loopAge: gauge(
    'tracewright.eventloop.age',
    's',
    'age of the running callback or iteration at one sample; with --raw only',
  ),
  loopDelay: {
    name: 'tracewright.eventloop.delay',
    unit: 's',
    instrument: 'histogram',
    description:
      'age of the running callback or iteration at each sample: how long the loop had not turned',
  },
  descriptors: updown(
    'tracewright.process.descriptors',
    '{file_descriptor}',
    'open descriptors by kind',
  ),
  sockets: updown('tracewright.process.sockets', '{socket}', 'open sockets by TCP state and peer'),
  threadsByName: updown('tracewright.process.threads', '{thread}', 'threads by name, digits as #'),
  asyncioTasks: updown(
    'tracewright.asyncio.tasks',
    '{task}',
    'asyncio tasks that exist, those that are done and not yet given up included',
  ),
  heapUsed: updown('v8js.memory.heap.used', 'By', 'bytes in use, by space of the V8 heap'),
  heapSize: updown('v8js.memory.heap.space.size', 'By', 'size of each space of the V8 heap'),
  heapAvailable: updown(
    'v8js.memory.heap.space.available_size',
    'By',
    'bytes available in each space of the V8 heap',
  ),
  heapPhysical: updown(
    'v8js.memory.heap.space.physical_size',
    'By',
    'committed bytes of each space of the V8 heap',
  ),
  heapLimit: updown('v8js.memory.heap.limit', 'By', 'heap_size_limit of V8'),
  heapExternal: updown(
    'tracewright.v8js.memory.external',
    'By',
    'memory outside the heap that its objects hold (buffers)',
  ),
  gcDuration: {
    name: 'v8js.gc.duration',
    unit: 's',
    instrument: 'histogram',
    description: 'pauses of the garbage collector, by kind of collection',
  },
  databaseLockWaits: gauge(
    'tracewright.database.lock.waiting',
    '{session}',
    'sessions of a database server that wait for a lock',
  ),
};
