import { type ChildProcess, spawn } from 'node:child_process';
import { readFileSync } from 'node:fs';
import { join } from 'node:path';

/** The built program, as `npx trace` starts it. */
export const MAIN: string = join(import.meta.dirname, '..', '..', 'dist', 'src', 'main.js');

export interface Ended {
  readonly code: number | null;
  readonly signal: NodeJS.Signals | null;
  readonly stdout: string;
  readonly stderr: string;
}

export interface CliOptions {
  readonly cwd?: string;
  readonly env?: Readonly<Record<string, string>>;
  /** What runs the program; this Node by default. */
  readonly command?: readonly string[];
  /** A run that has not ended by then hangs: it is killed, and ends with SIGKILL. */
  readonly limitS?: number;
}

const LIMIT_S = 60;

/** A run of the program that can be signalled before it ends. */
export interface CliRun {
  readonly child: ChildProcess;
  readonly pid: number;
  readonly ended: Promise<Ended>;
  /** Resolves when standard error or output has said this. */
  said(text: string): Promise<void>;
}

/** Starts `trace` with these arguments, without a terminal. The `OTEL_*` variables of the caller do not reach it. */
export function startCli(args: readonly string[], options: CliOptions = {}): CliRun {
  const [command, ...before] = options.command ?? [process.execPath];
  if (command === undefined) throw new Error('no command');
  const inherited = Object.entries(process.env).filter(
    ([name]) => !name.startsWith('OTEL_') && !name.startsWith('TRACEWRIGHT_'),
  );
  const child = spawn(command, [...before, MAIN, ...args], {
    cwd: options.cwd,
    env: { ...Object.fromEntries(inherited), NO_COLOR: '1', ...options.env },
    stdio: ['ignore', 'pipe', 'pipe'],
  });
  if (child.pid === undefined) throw new Error(`could not start ${command}`);
  let stdout = '';
  let stderr = '';
  const watchers = new Set<() => void>();
  const heard = (): void => {
    for (const watcher of watchers) watcher();
  };
  child.stdout.setEncoding('utf8').on('data', (text: string) => {
    stdout += text;
    heard();
  });
  child.stderr.setEncoding('utf8').on('data', (text: string) => {
    stderr += text;
    heard();
  });
  const limit = setTimeout(() => child.kill('SIGKILL'), (options.limitS ?? LIMIT_S) * 1e3);
  const ended = new Promise<Ended>((resolve, reject) => {
    child.on('error', reject);
    child.on('close', (code, signal) => {
      clearTimeout(limit);
      resolve({ code, signal, stdout, stderr });
    });
  });
  const said = (text: string): Promise<void> =>
    new Promise((resolve, reject) => {
      const look = (): void => {
        if (!stderr.includes(text) && !stdout.includes(text)) return;
        watchers.delete(look);
        resolve();
      };
      watchers.add(look);
      look();
      void ended.then(() =>
        reject(
          new Error(`trace ended without saying ${JSON.stringify(text)}:\n${stderr}${stdout}`),
        ),
      );
    });
  return { child, pid: child.pid, ended, said };
}

/** Runs `trace` to its end. */
export function runCli(args: readonly string[], options: CliOptions = {}): Promise<Ended> {
  return startCli(args, options).ended;
}

/** The parts of the `--json` document that tests look at; docs/schema has all of it. */
export interface ReportDocument {
  readonly schema_version: number;
  readonly tool: { readonly name: string; readonly version: string };
  readonly command: string;
  readonly started_at: string;
  readonly duration_s: number;
  readonly interrupted: boolean;
  readonly targets: readonly {
    readonly pid: number;
    readonly runtime: string;
    readonly runtime_version: string | null;
    readonly start_ticks: number;
    readonly namespace_pid: number | null;
    readonly container: string | null;
    readonly role: string | null;
  }[];
  readonly collectors: readonly {
    readonly name: string;
    readonly available: boolean;
    readonly reason: string | null;
    readonly remedy: string | null;
  }[];
  readonly findings: readonly FindingDocument[];
  readonly hypotheses: readonly unknown[];
  readonly gaps: readonly {
    readonly collector: string;
    readonly reason: string;
    readonly detail: string;
    readonly from_s: number;
    readonly to_s: number;
  }[];
  readonly metrics: Readonly<
    Record<
      string,
      {
        readonly unit: string;
        readonly series: readonly {
          readonly count: number;
          readonly first: number;
          readonly min: number;
          readonly max: number;
          readonly last: number;
          readonly attributes: Readonly<Record<string, unknown>>;
        }[];
      }
    >
  >;
  readonly overhead: {
    readonly own_cpu_ratio: number;
    readonly target_paused_s: number;
    readonly samples: number;
    readonly late: number;
  } | null;
  readonly problems: readonly string[];
  readonly recording: string | null;
  readonly trace_id: string;
  readonly trace_url: string | null;
}

export interface FindingDocument {
  readonly id: string;
  readonly code: string;
  readonly kind: string;
  readonly mechanism: string | null;
  readonly severity: string;
  readonly confidence: string;
  readonly pid: number | null;
  readonly summary: string;
  readonly where: readonly {
    readonly function: string;
    readonly file: string;
    readonly line: number | null;
    readonly share: number;
  }[];
  readonly measure: Readonly<Record<string, number>>;
  readonly remedy: string | null;
}

export function parseReport(run: Ended): ReportDocument {
  try {
    return JSON.parse(run.stdout) as ReportDocument;
  } catch {
    throw new Error(
      `not one JSON document (exit ${String(run.code)}):\n${run.stdout.slice(0, 2000)}\n${run.stderr.slice(-2000)}`,
    );
  }
}

/** The findings that are verdicts: a starved process is a note. */
export function verdicts(report: ReportDocument): readonly FindingDocument[] {
  return report.findings.filter(
    ({ severity, confidence }) => severity !== 'note' && confidence !== 'inconclusive',
  );
}

/** What the kernel says of a process: `state` is T or t while it is stopped, `tracer` the pid of a ptrace tracer or 0. */
export function processState(pid: number): { state: string; tracer: number } {
  const status = readFileSync(`/proc/${pid}/status`, 'utf8');
  return {
    state: /^State:\s+(\S)/m.exec(status)?.[1] ?? '?',
    tracer: Number(/^TracerPid:\s+(\d+)/m.exec(status)?.[1] ?? -1),
  };
}
