import { spawn } from 'node:child_process';
import { mkdtempSync, readdirSync, readFileSync, rmSync, statSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { createInterface } from 'node:readline';
import { setTimeout as sleep } from 'node:timers/promises';
import { it } from 'vitest';
import { theilSen } from '../../src/core/theil-sen.ts';
import { startCli } from '../e2e/cli.ts';
import { startTarget } from '../targets/harness.ts';
import { cpuOf, percent, publish, rowsOf, setting, table } from './measurements.ts';

/*
 * Long runs: what trace itself takes. `TRACEWRIGHT_SOAK_S` seconds (default an hour, and only an hour is published) of `trace attach` on a healthy server, and days of made-up
 * seconds through the same memory and the same recording, as fast as they take them, which comes to the limits that an hour does not.
 */

const HOUR_S = 3600;
const LONG_S = setting('TRACEWRIGHT_SOAK_S', HOUR_S);
/** Hours of the made-up days; fewer than a day where the run is shorter than an hour. */
const DAY_HOURS = Math.max(1, Math.round(Math.min(1, LONG_S / HOUR_S) * 24));
const SAMPLE_EVERY_S = 5;
const MIB = 2 ** 20;
/** The first quarter is start-up: compiled code, filled pools, the first recording's buffers. */
const WARM: number = 0.25;

interface Reading {
  /** Seconds since the start. */
  readonly at: number;
  readonly rss: number;
  readonly disk: number;
}

interface Attached {
  readonly readings: readonly Reading[];
  readonly cpu: number;
  readonly verdicts: number;
  readonly duration: number;
}

function rssOf(pid: number): number | null {
  try {
    const [, kilobytes] =
      /^VmRSS:\s+(\d+) kB/m.exec(readFileSync(`/proc/${pid}/status`, 'utf8')) ?? [];
    return kilobytes === undefined ? null : Number(kilobytes) * 1024;
  } catch {
    return null;
  }
}

function sizeOf(folder: string): number {
  try {
    return readdirSync(folder).reduce((sum, name) => sum + statSync(join(folder, name)).size, 0);
  } catch {
    return 0;
  }
}

/** `trace attach` as a person starts it, on a server with one real block of 60 ms a minute. */
async function attached(folder: string): Promise<Attached> {
  const target = await startTarget('asyncio', {
    kinds: ['sleep'],
    durations: [60],
    reps: LONG_S,
    healthy: true,
    plantS: Math.min(60, LONG_S / 8),
    seconds: LONG_S + 60,
  });
  const recording = join(folder, 'attached');
  try {
    const args = ['attach', String(target.pid), '-d', `${LONG_S}s`, '--json', '--no-progress'];
    const run = startCli([...args, '-o', recording], { limitS: LONG_S + 120 });
    const readings: Reading[] = [];
    const begin = performance.now();
    let cpu = 0;
    for (;;) {
      const rss = rssOf(run.pid);
      if (rss === null || run.child.exitCode !== null) break;
      cpu = cpuOf(run.pid);
      readings.push({ at: (performance.now() - begin) / 1e3, rss, disk: sizeOf(recording) });
      await sleep(SAMPLE_EVERY_S * 1e3);
    }
    const { stdout, stderr, code } = await run.ended;
    if (code !== 0 && code !== 1) throw new Error(`trace ended with ${String(code)}: ${stderr}`);
    const report = JSON.parse(stdout) as { duration_s: number; findings: readonly unknown[] };
    const { duration_s: duration, findings } = report;
    return { readings, cpu: cpu / duration, verdicts: findings.length, duration };
  } finally {
    await target.stop();
  }
}

interface Hour {
  readonly hour: number;
  readonly rss: number;
  readonly disk: number;
}

/** What the child says last. */
interface DayEnd {
  readonly readBack: number;
  readonly rss: number;
  readonly largest: number;
  readonly findings: readonly string[];
  readonly again: readonly string[];
}

interface Day {
  readonly name: string;
  readonly hours: readonly Hour[];
  readonly readBack: number;
  readonly rss: number;
  readonly largest: number;
  readonly maxSize: number;
  readonly same: boolean;
}

const DAYS = [
  { name: 'one process', processes: 1, maxSize: 512 * MIB },
  { name: 'ten processes', processes: 10, maxSize: 512 * MIB },
  { name: 'one process, --max-size 32MiB', processes: 1, maxSize: 32 * MIB },
] as const;

async function day(folder: string, which: (typeof DAYS)[number]): Promise<Day> {
  const { name, processes, maxSize } = which;
  const child = spawn(process.execPath, [
    join(import.meta.dirname, 'day-in-child.mjs'),
    join(folder, `day-${processes}-${maxSize}`),
    ...[DAY_HOURS, processes, maxSize].map(String),
  ]);
  let errors = '';
  child.stderr.setEncoding('utf8').on('data', (text: string) => (errors += text));
  const hours: Hour[] = [];
  let last: DayEnd | null = null;
  for await (const line of createInterface({ input: child.stdout })) {
    const read = JSON.parse(line) as Hour | DayEnd;
    if ('hour' in read) hours.push(read);
    else last = read;
  }
  if (last === null) throw new Error(`the day did not end:\n${errors}`);
  const same = JSON.stringify(last.findings) === JSON.stringify(last.again);
  const { readBack, rss, largest } = last;
  return { name, hours, readBack, rss, largest, maxSize, same };
}

/** The middle of the readings around a share of the run. */
function around(values: readonly number[], share: number): number {
  const at = Math.floor(share * (values.length - 1));
  const some = values.slice(Math.max(0, at - 5), at + 6).toSorted((a, b) => a - b);
  return some[Math.floor(some.length / 2)] ?? Number.NaN;
}

const mib = (bytes: number): string => `${(bytes / MIB).toFixed(0)} MiB`;

it('memory stays flat, and a recording below its size', { timeout: 4 * HOUR_S * 1e3 }, async () => {
  const folder = mkdtempSync(join(tmpdir(), 'trace-soak-'));
  try {
    const [run] = await rowsOf(`long-attach-${LONG_S}`, 1, () => attached(folder));
    const days = await rowsOf(`long-days-${DAY_HOURS}`, DAYS.length, (index) =>
      day(folder, DAYS[index] ?? DAYS[0]),
    );
    if (run === undefined) throw new Error('no run');
    const rss = run.readings.map((reading) => reading.rss);
    const warm = run.readings.filter(({ at }) => at > run.duration * WARM);
    const slope = theilSen(
      warm.map(({ at }) => at / 3600),
      warm.map((reading) => reading.rss / MIB),
    );
    const shares = [0, 0.25, 0.5, 0.75, 1];
    const say =
      LONG_S < HOUR_S ? (title: string, body: string) => console.log(title, body) : publish;
    say(
      'Long runs',
      `\`trace attach\` on a healthy asyncio server for ${run.duration.toFixed(0)} s, its resident memory read every ${SAMPLE_EVERY_S} s: after the first quarter ${slope.slope.toFixed(2)} MiB an hour (95 %: ${slope.low.toFixed(2)} to ${slope.high.toFixed(2)}). ${percent(run.cpu, 2)} of a core, start-up and report included; ${mib(run.readings.at(-1)?.disk ?? 0)} on disk.

${table(
  ['', ...shares.map((share) => (share === 0 ? 'start' : percent(share, 0))), 'most'],
  [['resident', ...shares.map((share) => mib(around(rss, share))), mib(Math.max(...rss))]],
)}

${DAY_HOURS} hours of made-up seconds (45 series that are noise, a histogram and now and then a block for each process) through the memory and the recording of attach, as fast as they take them. Noise hardly compresses: real recordings are smaller.

${table(
  [
    'hours of',
    'resident at half',
    'at the end',
    'reading it back',
    'takes',
    'on disk at most',
    'limit',
    'findings from memory and disk',
  ],
  days.map((one) => [
    one.name,
    mib(
      around(
        one.hours.map((hour) => hour.rss),
        0.5,
      ),
    ),
    mib(one.hours.at(-1)?.rss ?? 0),
    mib(one.rss),
    `${one.readBack.toFixed(0)} s`,
    mib(one.largest),
    mib(one.maxSize),
    one.same ? 'the same' : 'differ',
  ]),
)}`,
    );
  } finally {
    rmSync(folder, { recursive: true, force: true });
  }
});
