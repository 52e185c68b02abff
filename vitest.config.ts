import { defineConfig } from 'vitest/config';

/**
 * Two projects: what measures time or lets a target run on a core of its own goes one at a time ("timed"), after everything else ("unit").
 * Only "timed" needs dist/ (built once, before it): it spawns the CLI as a person would. Unit tests run on the sources.
 */
export default defineConfig({
  test: {
    projects: [
      {
        extends: true,
        test: {
          name: 'unit',
          include: ['test/**/*.test.ts'],
          exclude: ['test/e2e/**', 'test/**/*.timed.test.ts'],
          testTimeout: 20_000,
          hookTimeout: 300_000,
          sequence: { groupOrder: 1 },
        },
      },
      {
        extends: true,
        test: {
          name: 'timed',
          globalSetup: ['test/global-setup.ts'],
          include: ['test/e2e/**/*.test.ts', 'test/**/*.timed.test.ts'],
          // They install servers of 300 MB on first use: a section of their own in .ci/run asks for them.
          exclude: [
            ...(process.env['TRACEWRIGHT_SERVERS'] === '1'
              ? []
              : ['test/e2e/real-servers.test.ts']),
            ...(process.env['TRACEWRIGHT_JAEGER'] === '1' ? [] : ['test/e2e/jaeger.test.ts']),
          ],
          fileParallelism: false,
          maxWorkers: 1,
          // Within a file that says it may: light targets side by side.
          maxConcurrency: 8,
          testTimeout: 120_000,
          hookTimeout: 300_000,
          sequence: { groupOrder: 2 },
        },
      },
    ],
  },
});
