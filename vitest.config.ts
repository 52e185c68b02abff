import { defineConfig } from 'vitest/config';

/** What detection.test.ts does, for further releases of the runtimes: .ci/run names those. */
const RELEASES = [
  ...(process.env['TRACEWRIGHT_PYTHONS'] === undefined ? ['test/e2e/runtimes.test.ts'] : []),
  ...(process.env['TRACEWRIGHT_NODES'] === undefined ? ['test/e2e/nodes.test.ts'] : []),
];

/** The longest; what they show in depth another test shows in short. .ci/run has them. */
const LONG =
  process.env['TRACEWRIGHT_FULL'] === '1'
    ? []
    : [
        'test/e2e/load-accuracy.timed.test.ts',
        'test/e2e/inspect-kills.test.ts',
        'test/e2e/inspect-outcomes.test.ts',
        'test/e2e/leak.timed.test.ts',
        'test/e2e/bugbench.test.ts',
        'test/e2e/healthy-programs.test.ts',
        'test/e2e/wedge.test.ts',
        'test/e2e/locks.test.ts',
        'test/e2e/long-run.test.ts',
        'test/e2e/stress.test.ts',
        'test/e2e/gpu.test.ts',
        'test/e2e/server-metrics.test.ts',
        'test/e2e/flight.test.ts',
        'test/e2e/restarts.test.ts',
        'test/e2e/slow-requests.test.ts',
        'test/e2e/cgroups.test.ts',
        'test/e2e/containers.test.ts',
        'test/e2e/inspect.test.ts',
        'test/e2e/standalone.test.ts',
        'test/docs.timed.test.ts',
        'test/repro/oracles.test.ts',
        'test/repro/python-races.test.ts',
        'test/repro/isolate/isolate.test.ts',
        'test/e2e/repro-schedules.test.ts',
        'test/e2e/postgres.test.ts',
        'test/e2e/profile.test.ts',
        'test/collectors/gpu/gpu.test.ts',
        'test/collectors/node/profiler.timed.test.ts',
        'test/collectors/python/moving.timed.test.ts',
        'test/collectors/sampler/crew.timed.test.ts',
        'test/collectors/event-loop/libuv.timed.test.ts',
      ];

/** They spawn the CLI and look at what it does, not at when: two files at a time. */
const PROGRAMS = [
  'test/docs.timed.test.ts',
  'test/collectors/node/refusal.timed.test.ts',
  ...[
    'cgroups',
    'containers',
    'doctor',
    'gpu',
    'inspect',
    'inspect-kills',
    'inspect-outcomes',
    'load',
    'load-trace',
    'locks',
    'node-heap',
    'otlp',
    'outcomes',
    'package',
    'permissions',
    'postgres',
    'profile',
    'restarts',
    'repro-schedules',
    'run',
    'slow-requests',
    'standalone',
    'trees',
  ].map((name) => `test/e2e/${name}.test.ts`),
];

/**
 * They watch for tens of seconds and judge what grows, what stands still and what is said, not milliseconds: two files at a time, with cores
 * to spare for most of it.
 */
const WATCHES = [
  'test/e2e/leak.timed.test.ts',
  'test/e2e/clocks.test.ts',
  ...[
    'bugbench',
    'healthy-programs',
    'heap',
    'jaeger',
    'long-run',
    'real-servers',
    'server-metrics',
    'server-metrics-servers',
    'tasks',
    'wedge',
  ].map((name) => `test/e2e/${name}.test.ts`),
];

/** They install servers of 300 MB on first use: a section of their own in .ci/run asks for them. */
const SERVERS = [
  ...(process.env['TRACEWRIGHT_SERVERS'] === '1'
    ? []
    : [
        'test/e2e/real-servers.test.ts',
        'test/e2e/load-servers.test.ts',
        'test/e2e/server-metrics-servers.test.ts',
      ]),
  ...(process.env['TRACEWRIGHT_JAEGER'] === '1'
    ? []
    : ['test/e2e/jaeger.test.ts', 'test/e2e/load-jaeger.test.ts']),
];

const ON_DIST = {
  globalSetup: ['test/python-setup.ts', 'test/global-setup.ts'],
  // Within a file that says it may: light targets side by side.
  maxConcurrency: 8,
  testTimeout: 120_000,
  hookTimeout: 300_000,
};

/**
 * Four projects: what runs on the sources ("unit"), then what spawns the CLI as a person would ("programs"), what mostly waits while trace
 * watches ("watches"), and last, one at a time, what measures time or lets a target run on a core of its own ("timed"). Only the first needs
 * no dist/, which is built once.
 */
export default defineConfig({
  test: {
    projects: [
      {
        extends: true,
        test: {
          name: 'unit',
          globalSetup: ['test/python-setup.ts'],
          maxWorkers: '100%',
          // They share a process, not globals: a fresh one for each file costs a quarter of a second.
          isolate: false,
          include: ['test/**/*.test.ts'],
          exclude: ['test/e2e/**', 'test/**/*.timed.test.ts', ...LONG],
          testTimeout: 60_000,
          hookTimeout: 300_000,
          sequence: { groupOrder: 1 },
        },
      },
      {
        extends: true,
        test: {
          ...ON_DIST,
          name: 'programs',
          include: PROGRAMS,
          exclude: LONG,
          maxWorkers: 2,
          sequence: { groupOrder: 2 },
        },
      },
      {
        extends: true,
        test: {
          ...ON_DIST,
          name: 'watches',
          include: WATCHES,
          exclude: [...LONG, ...SERVERS],
          maxWorkers: 2,
          sequence: { groupOrder: 3 },
        },
      },
      {
        extends: true,
        test: {
          ...ON_DIST,
          name: 'timed',
          include: ['test/e2e/**/*.test.ts', 'test/**/*.timed.test.ts'],
          exclude: [
            ...PROGRAMS,
            ...WATCHES,
            ...RELEASES,
            ...LONG,
            ...SERVERS,
            // `npm run test:vllm` alone: 6 GB.
            ...(process.env['TRACEWRIGHT_VLLM'] === '1' ? [] : ['test/e2e/load-vllm.test.ts']),
          ],
          fileParallelism: false,
          maxWorkers: 1,
          sequence: { groupOrder: 4 },
        },
      },
    ],
  },
});
