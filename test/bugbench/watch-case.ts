import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { createInterface } from 'node:readline';
import { setTimeout as wait } from 'node:timers/promises';
import type { Seconds } from '../../src/core/types.ts';
import { openRecording } from '../../src/recording/reader.ts';
import { parseReport, runCli } from '../e2e/cli.ts';
import { startGroup } from '../process-group.ts';
import type { BugCase, Side } from './cases.ts';
import { timeToFinding } from './cut.ts';
import { environmentOf } from './environments.ts';
import { judge, type Said, type Verdict } from './score.ts';

/* One release of one case: start the driver, attach to the process that it says is ready, and keep what was said. */

/** Importing a large package on a busy machine; more is a failure. */
const READY_TIMEOUT_MS = 90_000;
/** Of the driver beyond the watch: trace has to start, find its way, and end before it. */
const SLACK: Seconds = 15;

/** What came of it; survives JSON. */
export interface Watched {
  readonly id: string;
  readonly side: Side;
  readonly verdict: Verdict;
  readonly findings: readonly Said[];
  /** Until the right kind and place stood; null where they never did. */
  readonly timeToFinding: Seconds | null;
  /** CPU of trace over the time it watched, one core = 1. */
  readonly ownCpu: number | null;
  /** What the driver says of itself at its end; null when it was not waited for. */
  readonly showed: boolean | null;
}

export interface WatchOptions {
  readonly watchS: Seconds;
  /** Whether to wait for the driver's own verdict. */
  readonly toTheEnd: boolean;
}

/** Runs a release of a case under `trace attach`. */
export async function watchCase(of: BugCase, side: Side, options: WatchOptions): Promise<Watched> {
  const { watchS, toTheEnd } = options;
  const folder = mkdtempSync(join(tmpdir(), 'bugbench-'));
  const driver = await startDriver(of, side, watchS + SLACK);
  try {
    const recording = join(folder, 'recording');
    const args = ['attach', String(driver.pid), '-d', String(watchS), '--json', '-o', recording];
    const inspect = of.recipes[side].kind === 'node' ? ['--inspect'] : [];
    const run = await runCli([...args, ...inspect, ...of.flags], { limitS: watchS + 90 });
    const report = parseReport(run);
    const view = await openRecording(recording);
    return {
      id: of.id,
      side,
      verdict: judge(of, report.findings),
      findings: report.findings.map(
        ({ code, kind, severity, confidence, mechanism, summary, where, measure }) => ({
          measure,
          code,
          kind,
          severity,
          confidence,
          mechanism,
          summary,
          where: where.map((place) => ({ function: place.function, file: place.file })),
        }),
      ),
      timeToFinding: timeToFinding(view, (findings) => judge(of, findings).place),
      ownCpu: report.overhead?.own_cpu_ratio ?? null,
      showed: toTheEnd ? await driver.showed() : null,
    };
  } finally {
    await driver.stop();
    rmSync(folder, { recursive: true, force: true });
  }
}

/** A driver that serves. */
export interface Driver {
  readonly pid: number;
  /** Waits for its end; whether it says that the bug showed. */
  showed(): Promise<boolean | null>;
  stop(): Promise<void>;
}

/** What stands before the program, and variables of its environment. */
export interface Started {
  readonly behind?: readonly string[];
  readonly env?: Readonly<Record<string, string>>;
}

/** Starts one release and waits until it serves. */
export async function startDriver(
  of: BugCase,
  side: Side,
  seconds: Seconds,
  { behind = [], env = {} }: Started = {},
): Promise<Driver> {
  const { command, cwd } = await environmentOf(of.recipes[side]);
  const words = ['env', '-C', cwd, ...behind, ...command, of.driver, String(seconds)];
  const { child, stop } = startGroup(words, {
    lifetime: seconds + 120,
    env: { PYTHONNOUSERSITE: '1', PYTHONDONTWRITEBYTECODE: '1', NODE_OPTIONS: '', ...env },
  });
  let last = '';
  let errors = '';
  child.stderr.setEncoding('utf8').on('data', (text: string) => {
    errors = (errors + text).slice(-4000);
  });
  try {
    const pid = await new Promise<number>((resolve, reject) => {
      const fail = (why: string): void =>
        reject(new Error(`${of.id}, ${side}: ${why}\n${last}\n${errors}`));
      const timer = setTimeout(() => fail('not ready in time'), READY_TIMEOUT_MS);
      child.on('error', (error) => fail(error.message));
      child.on('close', (code) => fail(`ended with ${String(code)} before it was ready`));
      createInterface(child.stdout).on('line', (line) => {
        last = line;
        if (!line.startsWith('READY ')) return;
        clearTimeout(timer);
        resolve(Number(line.split(' ')[1]));
      });
    });
    const closed = new Promise<void>((resolve) => child.on('close', () => resolve()));
    const showed = async (): Promise<boolean | null> => {
      await Promise.race([closed, wait((SLACK + 60) * 1e3, undefined, { ref: false })]);
      return verdictOf(last);
    };
    return { pid, showed, stop };
  } catch (error) {
    await stop();
    throw error;
  }
}

function verdictOf(line: string): boolean | null {
  try {
    const { bug } = JSON.parse(line) as { bug?: unknown };
    return typeof bug === 'boolean' ? bug : null;
  } catch {
    return null;
  }
}
