import { defineConfig } from 'vitest/config';

/**
 * `npm run bench`, `npm run bench:load`, `npm run bugbench` and `npm run soak`: measurements that take minutes or want a quiet machine. They are no tests: they fail only when they
 * cannot measure, and write what they measured into docs/measurements.md and docs/benchmarks.md.
 */
const HOUR_MS = 3_600_000;
const one = (name: string, include: string) => ({
  test: {
    name,
    include: [include],
    fileParallelism: false,
    maxWorkers: 1,
    testTimeout: HOUR_MS,
    hookTimeout: HOUR_MS,
    disableConsoleIntercept: true,
  },
});

export default defineConfig({
  test: {
    projects: [
      one('bench', 'test/bench/*.bench.ts'),
      one('load', 'test/bench/load/*.bench.ts'),
      one('soak', 'test/{bench,healthy}/*.soak.ts'),
      one('bugbench', 'test/bugbench/*.bench.ts'),
    ],
  },
});
