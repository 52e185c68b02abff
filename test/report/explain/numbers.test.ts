import { readFileSync } from 'node:fs';
import { describe, expect, it } from 'vitest';
import { LOCK_LAYOUTS } from '../../../collectors/python/locks/lock-layout.ts';
import { plainText, sectionOf } from '../../../src/report/explain/section.ts';

const PAGE = readFileSync('docs/detectors.md', 'utf8');

/** A constant of the source, as the number that is written there. */
function constant(file: string, name: string): number {
  const text = readFileSync(`src/${file}`, 'utf8');
  const [, value] = new RegExp(`const ${name}\\b[^=]*= ([\\d_.]+);`).exec(text) ?? [];
  if (value === undefined) throw new Error(`src/${file} has no number ${name}`);
  return Number(value.replaceAll('_', ''));
}

const share = (ratio: number): string => `${Math.round(ratio * 100)} %`;
const seconds = (value: number): string => `${value} s`;
const plain = (value: number): string => value.toLocaleString('en');

/** Numbers of the source, and how the page writes them. */
const QUOTED: readonly (readonly [string, string, string, (value: number) => string])[] = [
  ['TRC101', 'analysis/loop-blocked.ts', 'CRITICAL_BLOCK', seconds],
  ['TRC101', 'analysis/loop-blocked.ts', 'CRITICAL_SHARE', share],
  ['TRC101', 'analysis/import-blocks.ts', 'IMPORT_WITHIN', seconds],
  ['TRC101', 'commands/attach/options.ts', 'DEFAULT_LAG_THRESHOLD', (s) => `${s * 1e3} ms`],
  ['TRC102', 'analysis/cpu-spin.ts', 'SPIN_SECONDS', seconds],
  ['TRC102', 'analysis/cpu-spin.ts', 'SPIN_SHARE', share],
  ['TRC102', 'analysis/cpu-spin.ts', 'SPIN_ITERATIONS', (n) => `${plain(n)} turns`],
  ['TRC102', 'analysis/cpu-spin.ts', 'SPIN_EVENTS', share],
  ['TRC102', 'analysis/cpu-spin.ts', 'SPIN_MACHINERY', share],
  ['TRC102', 'analysis/cpu-spin.ts', 'SPIN_STACKS', (n) => `${n} stacks`],
  ['TRC102', 'analysis/cpu-spin.ts', 'SPIN_GOT', share],
  ['TRC102', 'analysis/cpu-spin.ts', 'THROTTLED_SHARE', share],
  ['TRC104', 'analysis/restarts.ts', 'SHORT_LIFE', seconds],
  ['TRC104', 'analysis/restarts.ts', 'LOOP_LIVES', (n) => `${n - 1} short lives`],
  ['TRC105', 'analysis/deadlock.ts', 'CIRCLE_AFTER', seconds],
  ['TRC105', 'analysis/deadlock.ts', 'LOST_AFTER', seconds],
  ['TRC105', 'analysis/pool-exhaustion.ts', 'STUCK_FOR', seconds],
  ['TRC105', 'analysis/lost-connections.ts', 'LOOKS', (n) => `${n} looks`],
  ['TRC105', 'analysis/lost-connections.ts', 'STOOD_FOR', seconds],
  ['TRC105', 'core/pool-look.ts', 'POOL_TASKS', (n) => `${n} tasks`],
  ['TRC105', 'core/thread-pool-look.ts', 'POOL_THREADS', (n) => `${n} threads`],
  ['TRC105', 'analysis/missed-wake-ups.ts', 'LOOKS', (n) => `${n} looks`],
  ['TRC106', 'analysis/lock-contention.ts', 'LEAST_READINGS', (n) => `${n} readings`],
  ['TRC106', 'analysis/lock-contention.ts', 'LEAST_WAITS', (n) => `${n} times`],
  ['TRC106', 'analysis/lock-contention.ts', 'BUSY_NOTE', share],
  ['TRC106', 'analysis/lock-contention.ts', 'BUSY_WARNING', share],
  ['TRC106', 'analysis/thread-pools.ts', 'STUCK_FOR', seconds],
  ['TRC110', 'analysis/growth-memory.ts', 'LEAST_MEMORY_TIME', seconds],
  ['TRC110', 'analysis/growth-memory.ts', 'LEAST_NAMED_TIME', seconds],
  ['TRC110', 'analysis/growth-memory.ts', 'LEAST_STEADY_TIME', seconds],
  ['TRC110', 'analysis/growth-heap.ts', 'HOLDER_SHARE', share],
  ['TRC110', 'analysis/growth-heap.ts', 'LONE_SHARE', share],
  ['TRC110', 'analysis/growth-by-work.ts', 'LEAST_CORRELATION', plain],
  ['TRC110', 'analysis/growth-by-work.ts', 'STRETCHES', (n) => `${n} stretches`],
  ['TRC111', 'core/trend.ts', 'LEVEL', plain],
  ['TRC111', 'core/trend.ts', 'LEAST_POINTS', (n) => `${n} readings`],
  ['TRC111', 'analysis/growth-owner.ts', 'OWNER_SHARE', share],
  ['TRC113', 'analysis/growth.ts', 'LEVEL_WORK', plain],
  ['TRC114', 'analysis/task-leak.ts', 'OWNER_SHARE', share],
  ['TRC114', 'analysis/task-leak.ts', 'SEEN_SHARE', share],
  ['TRC116', 'analysis/latency-drift.ts', 'NOTABLE', plain],
  ['TRC116', 'analysis/latency-drift.ts', 'GRAVE', plain],
  ['TRC116', 'analysis/latency-drift.ts', 'LEAST_RISE', (s) => `${s * 1e3} ms`],
  ['TRC116', 'analysis/latency-drift.ts', 'LEAST_TIME', seconds],
  ['TRC116', 'core/drift.ts', 'LEAST_VALUES', (n) => `${n} requests`],
  ['TRC116', 'core/drift.ts', 'LEVEL', plain],
  ['TRC117', 'analysis/race-errors.ts', 'LEVEL', plain],
  ['TRC117', 'analysis/race-errors.ts', 'LEAST_FAILURES', (n) => `${n} failures`],
  ['TRC117', 'analysis/race-errors.ts', 'LEAST_FACTOR', (n) => `${n} times`],
  ['TRC117', 'analysis/race-errors.ts', 'LEAST_LEVELS_FACTOR', (n) => `${n} times`],
  ['TRC120', 'analysis/cpu-throttled.ts', 'WARNING_SHARE', share],
  ['TRC120', 'analysis/cpu-throttled.ts', 'NOTE_SHARE', share],
  ['TRC120', 'analysis/cpu-throttled.ts', 'LEAST_THROTTLED', (n) => `${n} periods`],
  ['TRC121', 'analysis/memory-limit.ts', 'WARNING_SHARE', share],
  ['TRC121', 'analysis/memory-limit.ts', 'NOTE_SHARE', share],
  ['TRC121', 'analysis/memory-limit.ts', 'LEAST_HELD_UP', plain],
  ['TRC122', 'analysis/database-locks.ts', 'NOTABLE', seconds],
  ['TRC122', 'analysis/database-locks.ts', 'GRAVE', seconds],
  ['TRC122', 'analysis/database-locks.ts', 'DIRE', seconds],
  ['TRC122', 'analysis/database-locks.ts', 'FINDINGS', plain],
  ['TRC123', 'analysis/database-deadlock.ts', 'NEWS', (s) => `${s / 86_400} day`],
  ['TRC201', 'analysis/wedge.ts', 'LIKELY_AFTER', seconds],
  ['TRC201', 'analysis/wedge.ts', 'LONGEST_GAPS', (n) => `${n} times`],
  ['TRC201', 'analysis/wedge.ts', 'CONFIRMED_AFTER', seconds],
  ['TRC201', 'analysis/wedge.ts', 'COMPUTING_CONFIRMED_AFTER', seconds],
  ['TRC201', 'analysis/wedge.ts', 'COMPUTING_LIKELY_AFTER', seconds],
  ['TRC201', 'analysis/stall.ts', 'PROBE_UNANSWERED', seconds],
  ['TRC201', 'analysis/wedge-cause.ts', 'IDLE_CPU', share],
  ['TRC201', 'analysis/wedge-cause.ts', 'SPINNING_CPU', share],
  ['TRC201', 'analysis/wedge-cause.ts', 'GPU_STUCK', share],
  ['TRC210', 'analysis/server-saturation.ts', 'LEAST_PAGES', (n) => `${n} pages`],
  ['TRC210', 'analysis/server-saturation.ts', 'LEAST_DURATION', seconds],
  ['TRC210', 'analysis/server-saturation.ts', 'LEAST_QUEUE', (n) => `${n} requests`],
  ['TRC210', 'analysis/server-saturation.ts', 'OFTEN', share],
  ['TRC210', 'analysis/server-saturation.ts', 'KV_ROOM', share],
  ['TRC210', 'analysis/server-saturation.ts', 'PINNED', share],
  ['TRC210', 'analysis/server-saturation.ts', 'LEAST_PREEMPTIONS', (n) => `${n} preemptions`],
  ['TRC210', 'analysis/server-saturation.ts', 'STALLED_SHARE', share],
  ['TRC210', 'analysis/server-saturation.ts', 'CORE_FULL', share],
  ['TRC210', 'analysis/server-stretches.ts', 'KV_FULL', share],
  ['TRC220', 'analysis/gpu-memory-leak.ts', 'LEAST_TIME', seconds],
  ['TRC220', 'analysis/gpu-memory-leak.ts', 'WORKS_FROM', share],
  ['TRC220', 'analysis/gpu-memory-leak.ts', 'OWNER_SHARE', share],
  ['TRC221', 'analysis/gpu-idle.ts', 'IDLE_BELOW', share],
  ['TRC221', 'analysis/gpu-idle.ts', 'LEAST_WAITING', seconds],
  ['TRC221', 'analysis/gpu-idle.ts', 'FRESH', seconds],
  ['TRC221', 'analysis/gpu-idle.ts', 'BUSY_THREAD', share],
  ['TRC222', 'analysis/gpu-throttled.ts', 'HARDWARE_SHARE', share],
  ['TRC222', 'analysis/gpu-throttled.ts', 'HEAT_SHARE', share],
  ['TRC222', 'analysis/gpu-throttled.ts', 'POWER_SHARE', share],
  ['TRC222', 'analysis/gpu-throttled.ts', 'CLOCK_LEFT', share],
  ['TRC222', 'analysis/gpu-throttled.ts', 'LEAST_READINGS', (n) => `${n} readings`],
  ['TRC223', '../collectors/gpu/run.ts', 'LOOK_BACK', (s) => `${s / 60} min`],
  ['TRC301', 'core/load-client.ts', 'FULL_CORE', plain],
  ['TRC301', 'core/load-client.ts', 'BUSY_CORE', plain],
  ['TRC301', 'core/load-client.ts', 'LATE', (s) => `${s * 1e3} ms`],
  ['TRC301', 'core/load-client.ts', 'LATE_TAIL', (s) => `${s * 1e3} ms`],
  ['TRC302', 'core/load-saturation.ts', 'LEAST_SLOPE', plain],
  ['TRC302', 'core/load-saturation.ts', 'BACKLOG_DEVIATIONS', (n) => `${n} standard deviations`],
  ['TRC302', 'core/load-saturation.ts', 'BACKLOG_SHARE', share],
  ['TRC302', 'core/load-saturation.ts', 'CAUGHT_UP', (n) => `${n} times`],
  ['TRC302', 'core/load-saturation.ts', 'AS_GOOD', share],
  ['TRC303', 'core/load-rates.ts', 'NOTABLE_FAILURES', share],
  ['TRC304', 'analysis/slow-requests.ts', 'LEAST_EXPLAINED', (n) => `${n} requests`],
  ['TRC304', 'analysis/request-moments.ts', 'SLOW_QUANTILE', (q) => `p${q * 100}`],
  ['TRC304', 'analysis/request-moments.ts', 'SLOW_FACTOR', (n) => `${n} times`],
  ['TRC304', 'analysis/request-moments.ts', 'EXPLAINS', share],
];

/** The least growth that counts, `{ rise, ratio }` in the source. */
const LEASTS: readonly (readonly [string, string, string, string])[] = [
  ['TRC110', 'analysis/growth-memory.ts', 'LEAST_MEMORY', '8 MiB and 10 %'],
  ['TRC110', 'analysis/growth-memory.ts', 'LEAST_NAMED', '48 MiB and 25 %'],
  ['TRC110', 'analysis/growth-memory.ts', 'LEAST_UNCACHED', '4 MiB and 10 %'],
  ['TRC119', 'analysis/growth-memory.ts', 'LEAST_MEMORY_SHORT', '256 MiB and 50 %'],
  ['TRC111', 'analysis/growth.ts', 'LEAST_FDS', '16 and 25 %'],
  ['TRC111', 'analysis/growth.ts', 'LEAST_FDS_SHORT', '40 and 50 %'],
  ['TRC112', 'analysis/growth.ts', 'LEAST_THREADS', '8 and 25 %'],
  ['TRC112', 'analysis/growth.ts', 'LEAST_THREADS_SHORT', '64 and 50 %'],
  ['TRC113', 'analysis/growth.ts', 'LEAST_FDS', '16 and 25 %'],
  ['TRC114', 'analysis/task-leak.ts', 'LEAST', '16 and 25 %'],
  ['TRC114', 'analysis/task-leak.ts', 'LEAST_SHORT', '40 and 50 %'],
  ['TRC220', 'analysis/gpu-memory-leak.ts', 'LEAST', '128 MiB and 5 %'],
];

function least(file: string, name: string): string {
  const text = readFileSync(`src/${file}`, 'utf8');
  const pattern = new RegExp(
    `const ${name}: Least = \\{ rise: (\\d+)( \\* 2 \\*\\* 20)?, ratio: ([\\d.]+) \\}`,
  );
  const [, rise = '', isMemory, ratio = ''] = pattern.exec(text) ?? [];
  return `${rise}${isMemory === undefined ? '' : ' MiB'} and ${share(Number(ratio))}`;
}

const numbersOf = (code: string): string =>
  sectionOf(PAGE, code)
    .Numbers.map(({ text }) => plainText(text))
    .join('\n');

describe('numbers on the page', () => {
  it.each(QUOTED)('of %s are those of src/%s: %s', (code, file, name, written) => {
    const number = written(constant(file, name));
    expect(numbersOf(code)).toMatch(
      new RegExp(`(?<![\\d.,])${number.replaceAll('.', '\\.')}(?!\\d)`),
    );
  });

  it.each(LEASTS)('of %s are those of src/%s: %s', (code, file, name, quoted) => {
    expect(least(file, name)).toBe(quoted);
    expect(numbersOf(code)).toContain(quoted);
  });
});

it.each(['TRC105', 'TRC106'])(
  'versions of CPython that %s reads are those of its layouts',
  (code) => {
    const minors = Object.keys(LOCK_LAYOUTS).map(Number);
    const blind = sectionOf(PAGE, code)
      .Blind.map(({ text }) => text)
      .join(' ');
    expect(blind).toContain(`before 3.${Math.min(...minors)} or after 3.${Math.max(...minors)}`);
  },
);
