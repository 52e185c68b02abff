import { cpSync, existsSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import type { ReproParameters } from '../../../repro/parameters/parameters.ts';
import { main } from '../../../src/cli.ts';
import { fakeEnvironment } from '../../commands/fake-environment.ts';
import { buggyFlags, controlOf, fixedFlags, type PublishedCase } from './case.ts';

/* One case from its call to the smallest reproduction, by the verbs that a user has. */

/** How often it happened, of trials that could run. */
export interface Rate {
  readonly hits: number;
  readonly trials: number;
}

/** What `explore` found where trials alone did not. */
interface Explored {
  readonly tried: number;
  readonly found: boolean;
  /** Waits of the schedule that was found, and of the smallest that still fails. */
  readonly waits: number;
  readonly left: number;
  /** The smallest schedule again, on both releases. */
  readonly buggy: Rate;
  readonly fixed: Rate;
  /** As many schedules on the fixed release. */
  readonly fixedSchedules: Rate;
}

/** A row of the table. */
export interface PublishedRow {
  readonly name: string;
  readonly class: string;
  readonly issue: string;
  readonly releases: string;
  readonly oracle: string;
  readonly buggy: Rate;
  readonly fixed: Rate;
  readonly explored: Explored | null;
  readonly before: Size;
  /** Null: nothing to be made smaller, because it did not fail often enough by itself. */
  readonly after: (Size & { readonly buggy: Rate; readonly fixed: Rate }) | null;
  /** Trials of all stages, the fixed release's too. */
  readonly trials: number;
  readonly seconds: number;
  /** Why a stage could not be done; null when all were. */
  readonly problem: string | null;
}

interface Size {
  readonly attempts: number;
  readonly concurrency: number;
  readonly lists: number;
}

export interface Effort {
  readonly runs: number;
  readonly schedules: number;
  readonly shrinkTrials: number;
  readonly shrinkTime: string;
}

/** Generates, runs, explores where that shows nothing, shrinks and runs again. */
export async function takeThrough(one: PublishedCase, effort: Effort): Promise<PublishedRow> {
  const folder = mkdtempSync(join(tmpdir(), 'trace-published-'));
  const began = performance.now();
  try {
    cpSync(one.folder, folder, { recursive: true });
    const stages = new Stages(one, folder, effort);
    const row = await stages.all();
    return { ...row, seconds: (performance.now() - began) / 1e3 };
  } finally {
    rmSync(folder, { recursive: true, force: true });
  }
}

/** A rate at which `shrink` may begin: the one that it keeps. */
const KEPT_RATE = 0.5;

class Stages {
  readonly #case: PublishedCase;
  readonly #folder: string;
  readonly #effort: Effort;
  #trials = 0;

  constructor(one: PublishedCase, folder: string, effort: Effort) {
    this.#case = one;
    this.#folder = folder;
    this.#effort = effort;
  }

  async all(): Promise<Omit<PublishedRow, 'seconds'>> {
    const { name, issue, oracle, packages, control } = this.#case;
    await this.#generate();
    const before = this.#size('parameters.json');
    const natural = await this.#judge();
    const row = {
      name,
      class: this.#case.class,
      issue,
      oracle,
      releases: releasesOf(packages, control, this.#case.python),
      ...natural,
      before,
      explored: null,
      after: null,
      problem: natural.problem,
    };
    if (row.problem !== null) return { ...row, trials: this.#trials };
    if (natural.buggy.hits / natural.buggy.trials < KEPT_RATE) {
      const explored = await this.#explore();
      if (typeof explored === 'string') return { ...row, problem: explored, trials: this.#trials };
      return { ...row, explored, trials: this.#trials };
    }
    const said = await this.#trace(
      'repro',
      'shrink',
      'repro',
      '--write',
      '--control',
      controlOf(this.#case),
      ...this.#shrinkFlags(),
    );
    this.#trials +=
      count(/in (\d+) trials/, said.out) +
      count(/seeds: fails \d+ of (\d+)/, said.out) +
      count(/control, .*: fails \d+ of (\d+)/, said.out);
    if (said.code !== 0)
      return { ...row, problem: `shrink: ${lastLine(said)}`, trials: this.#trials };
    const small = await this.#judge();
    const after = { ...this.#size('parameters.json'), ...small };
    return { ...row, after, problem: small.problem, trials: this.#trials };
  }

  async #generate(): Promise<void> {
    const { call, setup, args, oracle, attempts, concurrency } = this.#case;
    if (args !== undefined) writeFileSync(join(this.#folder, 'args.json'), JSON.stringify(args));
    const made = await this.#trace(
      'repro',
      'new',
      '--call',
      call,
      '--oracle',
      oracle,
      '-o',
      'repro',
      ...(setup === undefined ? [] : ['--setup', setup]),
      ...(args === undefined ? [] : ['--args-file', 'args.json']),
      ...(attempts === undefined ? [] : ['--attempts', String(attempts)]),
      ...(concurrency === undefined ? [] : ['--concurrency', String(concurrency)]),
      ...buggyFlags(this.#case),
    );
    if (made.code !== 0) throw new Error(`${this.#case.name}: ${made.err}`);
  }

  /** Trials of both releases in turn. */
  async #judge(): Promise<{ buggy: Rate; fixed: Rate; problem: string | null }> {
    const run = await this.#trace(
      'repro',
      'run',
      'repro',
      '--json',
      '--quiet',
      '--no-recording',
      '--runs',
      String(this.#effort.runs),
      '--control',
      controlOf(this.#case),
      ...buggyFlags(this.#case),
    );
    const path = join(this.#folder, 'repro', 'verdict.json');
    if (!existsSync(path)) return { buggy: NONE, fixed: NONE, problem: `run: ${lastLine(run)}` };
    const { subject, control, trials } = JSON.parse(readFileSync(path, 'utf8')) as Verdict;
    this.#trials += trials.length;
    const invalid = trials.find(({ outcome }) => outcome === 'invalid');
    // One that could not run (a machine that stood still) says nothing; without any that ran nothing is known.
    const isKnown = subject.trials > 0 && (control?.trials ?? 0) > 0;
    return {
      buggy: { hits: subject.reproduced, trials: subject.trials },
      fixed: { hits: control?.reproduced ?? 0, trials: control?.trials ?? 0 },
      problem: isKnown ? null : `no trial could run: ${invalid?.reason ?? '?'}`,
    };
  }

  async #explore(): Promise<Explored | string> {
    const { schedules } = this.#effort;
    const included = (this.#case.include ?? []).flatMap((name) => ['--include', name]);
    const flags = ['--schedules', String(schedules), ...included, '--quiet'];
    const found = await this.#trace(
      'repro',
      'explore',
      'repro',
      ...flags,
      ...buggyFlags(this.#case),
    );
    const tried = count(/(\d+) schedules? tried/, found.out);
    this.#trials += tried;
    const schedule = /schedule of \d+ waits?: (\S+)/.exec(found.out)?.[1];
    if (schedule === undefined) return `explore: ${lastLine(found)}`;
    const shrunk = await this.#trace(
      'repro',
      'shrink',
      'repro',
      '--schedule',
      schedule,
      ...this.#shrinkFlags(),
    );
    this.#trials += count(/in (\d+) runs/, shrunk.out) + count(/fails \d+ of (\d+)/, shrunk.out);
    const small = /^schedule: (\S+)$/m.exec(shrunk.out)?.[1] ?? schedule;
    const replayed = async (flagsOf: readonly string[]): Promise<Rate> => {
      const { out } = await this.#trace(
        'repro',
        'replay',
        'repro',
        '--schedule',
        small,
        ...flagsOf,
      );
      const [, hits = '0', runs = '0'] = /fails (\d+) of (\d+)/.exec(out) ?? [];
      this.#trials += Number(runs);
      return { hits: Number(hits), trials: Number(runs) };
    };
    const buggy = await replayed(buggyFlags(this.#case));
    const fixed = await replayed(fixedFlags(this.#case));
    const twin = await this.#trace(
      'repro',
      'explore',
      'repro',
      '--all',
      ...flags,
      ...fixedFlags(this.#case),
    );
    const fixedSchedules = {
      hits: count(/^failed: (\d+) \//m, twin.out),
      trials: count(/(\d+) schedules? tried/, twin.out),
    };
    this.#trials += fixedSchedules.trials;
    return {
      tried,
      found: true,
      waits: count(/schedule of (\d+) waits?/, found.out),
      left: count(/waits before, (\d+) left/, shrunk.out),
      buggy,
      fixed,
      fixedSchedules,
    };
  }

  #shrinkFlags(): readonly string[] {
    const { shrinkTrials, shrinkTime } = this.#effort;
    const budget = ['--trials', String(shrinkTrials), '--time', shrinkTime, '--quiet'];
    return [...budget, ...buggyFlags(this.#case)];
  }

  #size(name: string): Size {
    const path = join(this.#folder, 'repro', name);
    const { attempts, concurrency, call } = JSON.parse(
      readFileSync(path, 'utf8'),
    ) as ReproParameters;
    return { attempts, concurrency, lists: call?.args.length ?? 0 };
  }

  async #trace(...argv: string[]): Promise<{ code: number; out: string; err: string }> {
    const env = Object.fromEntries(
      Object.entries(process.env).flatMap(([name, value]) =>
        value === undefined ? [] : [[name, value]],
      ),
    );
    const environment = fakeEnvironment({ cwd: this.#folder, env });
    const code = await main(argv, environment);
    return { code, out: environment.out(), err: environment.err() };
  }
}

const NONE: Rate = { hits: 0, trials: 0 };

/** Of `verdict.json`, what is read here. */
interface Verdict {
  readonly subject: { readonly reproduced: number; readonly trials: number };
  readonly control: { readonly reproduced: number; readonly trials: number } | null;
  readonly trials: readonly { readonly outcome: string; readonly reason: string | null }[];
}

function count(pattern: RegExp, text: string): number {
  return Number(pattern.exec(text)?.[1] ?? 0);
}

function lastLine({ out, err }: { readonly out: string; readonly err: string }): string {
  return `${out}\n${err}`.trim().split('\n').at(-1) ?? '';
}

function releasesOf(packages: readonly string[], control: string, python?: string): string {
  if (control.startsWith('python=')) return `CPython ${python ?? '?'} / ${control.slice(7)}`;
  const [buggy = '?'] = packages;
  return `${buggy.replace('==', ' ').replace(/(?<!^)@/, ' ')} / ${control.replace(/^.+(?:==|@)/, '')}`;
}
