import { mkdtempSync, readdirSync, readFileSync, rmSync, statSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { setTimeout as wait } from 'node:timers/promises';
import type { Seconds } from '../../../src/core/types.ts';
import { KINDS, startTarget } from '../../targets/harness.ts';
import { type Rate, rateOf, startNodeWork } from '../work.ts';
import type { Peers } from './install.ts';
import { startedRound, type WorkRow } from './rounds.ts';

/* Tools that cannot attach: the target is started anew under each. */

/** A tool that starts the target. */
export interface Starter {
  readonly name: string;
  /** Stands before `node program.js …`; with a report at the end or without. */
  command(folder: string, withReport: boolean): readonly string[];
}

export function startersOf({ clinic, '0x': zeroX }: Peers): readonly Starter[] {
  const starters: Starter[] = [];
  if (zeroX.path !== null) {
    const { path } = zeroX;
    starters.push({
      name: '0x',
      command: (folder, withReport) => {
        const how = withReport ? ['--tree-debug'] : ['--collect-only'];
        return [path, ...how, '-D', join(folder, 'out'), '--'];
      },
    });
  }
  if (clinic.path !== null) {
    const { path } = clinic;
    for (const part of ['flame', 'doctor'])
      starters.push({
        name: `clinic ${part}`,
        command: (folder, withReport) => {
          const how = withReport ? [] : ['--collect-only'];
          return [path, part, '--open=false', ...how, '--dest', folder, '--'];
        },
      });
  }
  return starters;
}

/** clinic asks for consent on a terminal and stops without one; it phones home unless told not to. */
export function silenceClinic(): void {
  process.env['NO_INSIGHT'] = '1';
  process.env['NO_UPDATE_NOTIFIER'] = '1';
}

export interface StarterRow {
  readonly tool: string;
  /** Blocks that the service says it made. */
  readonly blocks: number;
  /** The planted functions that stand anywhere in what it wrote. */
  readonly named: readonly string[];
  /** clinic doctor's judgement of a server whose loop is blocked most of the time. */
  readonly verdict: string | null;
  /** From the end of the target to the finished report. */
  readonly report: Seconds;
  readonly bytes: number;
}

const PLAN_S = 6;

/** A whole run as a person does it: start the server under the tool, let it block, stop it, look at the report. */
export async function report(starter: Starter): Promise<StarterRow> {
  const folder = mkdtempSync(join(tmpdir(), 'tracewright-peer-'));
  try {
    const target = await startTarget('node-http', {
      kinds: KINDS,
      durations: [80],
      reps: 6,
      startS: 0.5,
      seconds: PLAN_S,
      behind: starter.command(folder, true),
    });
    const { pid } = target;
    const isAlive = (): boolean => {
      try {
        return !/^State:\s+Z/m.test(readFileSync(`/proc/${pid}/status`, 'utf8'));
      } catch {
        return false;
      }
    };
    while (isAlive()) await wait(20);
    const ended = performance.now();
    await target.exited;
    const seconds = (performance.now() - ended) / 1e3;
    const blocks = target.truth().length;
    await target.stop();
    const files = readdirSync(folder, { recursive: true, encoding: 'utf8' })
      .map((name) => join(folder, name))
      .filter((path) => statSync(path).isFile());
    const texts = files
      .filter((path) => /\.(html|json)$/.test(path))
      .map((path) => readFileSync(path, 'utf8'));
    const functionOf = (kind: string): string =>
      `blocking${kind.charAt(0).toUpperCase()}${kind.slice(1)}`;
    return {
      tool: starter.name,
      blocks,
      named: KINDS.filter((kind) => texts.some((text) => text.includes(functionOf(kind)))),
      verdict: /"issueCategory":"([^"]+)"/.exec(texts.join('\n'))?.[1] ?? null,
      report: seconds,
      bytes: files.reduce((sum, path) => sum + statSync(path).size, 0),
    };
  } finally {
    rmSync(folder, { recursive: true, force: true });
  }
}

/** These first seconds belong to start-up. */
const WARM_UP_S = 0.8;
const SLOT_S = 1.5;

/** The saturated target started plainly and under each tool, there and back again. */
export function starterRound(starters: readonly Starter[]): Promise<WorkRow> {
  return startedRound(
    starters.map(({ name }) => name),
    async (arm): Promise<Rate> => {
      const folder = mkdtempSync(join(tmpdir(), 'tracewright-peer-'));
      const starter = starters.find(({ name }) => name === arm);
      const seconds = WARM_UP_S + SLOT_S + 0.3;
      const target = await startNodeWork(seconds, starter?.command(folder, false));
      try {
        await wait(WARM_UP_S * 1e3);
        const from = Number(process.hrtime.bigint());
        await wait(SLOT_S * 1e3);
        const rate = rateOf(target, from, Number(process.hrtime.bigint()));
        await target.exited;
        return rate;
      } finally {
        await target.stop();
        rmSync(folder, { recursive: true, force: true });
      }
    },
  );
}
