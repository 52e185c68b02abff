import { spawn } from 'node:child_process';
import { mkdtempSync, readdirSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import type { Seconds } from '../../../src/core/types.ts';
import type { TruthBlock } from '../../truth/truth.ts';
import type { SeenSpan } from '../../truth/score.ts';
import { cpuOf } from '../measurements.ts';
import type { Tool } from './tools.ts';

/** A tool that was told to end and does not is killed then. */
const STOP_LIMIT_MS = 20_000;

/** CPU seconds of a process and of everything it started that still runs. */
function cpuOfTree(pid: number): Seconds {
  const children = readdirSync(`/proc/${pid}/task`).flatMap((tid) =>
    readFileSync(`/proc/${pid}/task/${tid}/children`, 'utf8')
      .split(' ')
      .filter(Boolean)
      .map(Number),
  );
  return children.reduce((total, child) => total + cpuOfTree(child), cpuOf(pid));
}

/** Without what would make trace export or is meant for the tests. */
function inherited(): NodeJS.ProcessEnv {
  const kept = Object.entries(process.env).filter(([name]) => !/^(OTEL|TRACEWRIGHT)_/.test(name));
  return Object.fromEntries(kept);
}

/** A tool at work on a process. */
export interface RunningTool {
  cpu(): Seconds;
  /** Ends it by SIGINT, and gives the blocks in its output. */
  stop(truth: () => readonly TruthBlock[]): Promise<readonly SeenSpan[]>;
  /** Ends it and forgets its output. */
  discard(): Promise<void>;
}

/** What targets and tools are started behind (namespace.ts). */
export type Behind = readonly string[];

export function startTool(tool: Tool, pid: number, behind: Behind): RunningTool {
  const folder = mkdtempSync(join(tmpdir(), 'tracewright-peer-'));
  const [command = '', ...args] = [...behind, ...tool.command(pid, folder)];
  const child = spawn(command, args, {
    stdio: ['ignore', 'pipe', 'pipe'],
    env: { ...inherited(), NO_COLOR: '1', ...tool.env },
  });
  let stdout = '';
  let stderr = '';
  child.stdout.setEncoding('utf8').on('data', (text: string) => (stdout += text));
  child.stderr.setEncoding('utf8').on('data', (text: string) => (stderr += text));
  const exited = new Promise<void>((resolve) => {
    child.on('error', () => resolve());
    child.on('close', () => resolve());
  });
  const alive = (): void => {
    if (child.pid === undefined || child.exitCode !== null || child.signalCode !== null)
      throw new Error(`${tool.name} ended by itself: ${stderr.slice(-1000)}${stdout.slice(-500)}`);
  };
  const end = async (): Promise<void> => {
    alive();
    child.kill('SIGINT');
    const limit = setTimeout(() => child.kill('SIGKILL'), STOP_LIMIT_MS);
    await exited;
    clearTimeout(limit);
  };
  return {
    cpu() {
      alive();
      return cpuOfTree(child.pid ?? 0);
    },
    async stop(truth) {
      await end();
      try {
        return await tool.spans({ pid, folder, stdout, truth: truth() });
      } finally {
        rmSync(folder, { recursive: true, force: true });
      }
    },
    async discard() {
      await end().finally(() => rmSync(folder, { recursive: true, force: true }));
    },
  };
}
