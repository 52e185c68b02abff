import { defineConfig } from 'vitest/config';

/*
 * A test file's name says where it runs; there are no lists.
 *
 *   *.test.ts             on the sources; below test/e2e on dist/, as a person would run the program
 *   *.timed.test.ts       alone: it waits for things that a busy machine delays, and would delay others
 *   *.long.test.ts        not in `npm test`, but in `npm run test:long` and .ci/run
 *   *.timed.long.test.ts  both
 *   *.releases.test.ts    once for each further release of Python or Node that .ci/run names
 *   *.servers.test.ts     on real servers, which are installed on first use (some 300 MB each)
 *   *.vllm.test.ts        on vLLM (6 GB): `npm run test:vllm`
 */

/** Files with a second suffix belong to a project of their own. */
const SUFFIXED = 'test/**/*.{timed,long,releases,servers,vllm}.test.ts';

/**
 * Test files at a time. Most of what they do is wait for a process that watches another, so two for each core of the smallest
 * machine that CI has; on a busy machine it is also what gives the tests their share of the cores.
 */
const AT_ONCE = Number(process.env['TRACEWRIGHT_AT_ONCE'] ?? 4);

const ON_DIST = {
  globalSetup: ['test/python-setup.ts', 'test/global-setup.ts'],
  // Within a file that says it may: light targets side by side.
  maxConcurrency: 4,
  testTimeout: 120_000,
  hookTimeout: 300_000,
};

type Place = { readonly include: string; readonly exclude?: readonly string[] };

/** A project that runs on dist/, after those before it. */
const onDist = (name: string, order: number, atOnce: number, { include, exclude = [] }: Place) => ({
  extends: true as const,
  test: {
    ...ON_DIST,
    name,
    include: [include],
    exclude: [...exclude],
    maxWorkers: atOnce,
    fileParallelism: atOnce > 1,
    sequence: { groupOrder: order },
  },
});

export default defineConfig({
  test: {
    // What is asked for again and again comes late on a busy machine.
    expect: { poll: { timeout: 30_000 } },
    projects: [
      {
        extends: true,
        test: {
          name: 'unit',
          globalSetup: ['test/python-setup.ts'],
          maxWorkers: AT_ONCE,
          // They share a process, not globals: a fresh one for each file costs a quarter of a second.
          isolate: false,
          include: ['test/**/*.test.ts'],
          exclude: ['test/e2e/**', SUFFIXED],
          testTimeout: 60_000,
          hookTimeout: 300_000,
          sequence: { groupOrder: 1 },
        },
      },
      onDist('programs', 2, AT_ONCE, {
        include: 'test/e2e/**/*.test.ts',
        exclude: [SUFFIXED],
      }),
      onDist('timed', 3, 1, { include: 'test/**/*.timed.test.ts' }),
      onDist('long', 4, 2, {
        include: 'test/**/*.long.test.ts',
        exclude: ['test/**/*.timed.long.test.ts'],
      }),
      onDist('timed-long', 5, 1, { include: 'test/**/*.timed.long.test.ts' }),
      onDist('releases', 6, 1, { include: 'test/**/*.releases.test.ts' }),
      onDist('servers', 7, 1, { include: 'test/**/*.servers.test.ts' }),
      // 6 GB: only where it is asked for by name.
      ...(process.env['TRACEWRIGHT_VLLM'] === '1'
        ? [onDist('vllm', 8, 1, { include: 'test/**/*.vllm.test.ts' })]
        : []),
    ],
  },
});
