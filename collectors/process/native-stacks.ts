import { type ChildProcess, spawn } from 'node:child_process';
import { setTimeout as pause } from 'node:timers/promises';
import type { ProcessTarget, Seconds } from '../../src/core/types.ts';
import { printable } from '../../src/core/text.ts';
import { endProcessGroup, letRunAgain } from '../../src/platform/touch.ts';
import { HoldWatch } from './hold-watch.ts';
import { parseEuStack, parsePySpy, type NativeStacks } from './native-frames.ts';

/** One look at the native stacks of a process by a tool that stops it for that: py-spy or eu-stack. */

export type NativeToolName = 'py-spy' | 'eu-stack';

export interface NativeTool {
  readonly name: NativeToolName;
  readonly path: string;
}

/** How long one look may take in all: reading the symbols of large libraries takes seconds, without holding the target. */
const LOOK_LIMIT: Seconds = 10;
/** 500 threads of 200 frames are 25 MB of JSON. */
const OUTPUT_LIMIT = 64 * 2 ** 20;
const ERROR_LIMIT = 4096;
/** A tool that has ended has let go by then, also on a crowded machine. */
const RELEASE_TRIES = 50;
const RELEASE_PAUSE_MS = 2;

export interface NativeLook {
  /** Null where it failed, for the reason given. */
  readonly stacks: NativeStacks | null;
  readonly reason: string | null;
  /** The target was stopped by then no longer than this, in all and at a time. */
  readonly held: Seconds;
  readonly longest: Seconds;
  /** States of threads just before, by their letters. */
  readonly states: ReadonlyMap<number, string>;
}

/**
 * Runs the tool once. It is killed when the target has been stopped for `mostHeld`, or it takes ten seconds; whatever comes of it, the
 * target runs afterwards. Never rejects.
 */
export async function lookNatively(
  tool: NativeTool,
  target: ProcessTarget,
  mostHeld: Seconds,
): Promise<NativeLook> {
  let why: string | null = null;
  let breakOff = (_reason: string): void => {};
  const watch = new HoldWatch(target.pid, (since) => {
    if (since > mostHeld) breakOff('it held the process longer than --max-pause allows');
  });
  const { states } = watch;
  if (states.get(target.pid) === 'T') {
    watch.end();
    return {
      stacks: null,
      reason: 'the process was stopped by a signal',
      held: 0,
      longest: 0,
      states,
    };
  }
  const ended = await new Promise<Ended>((resolve) => {
    // Without a descriptor to spare it has no outputs.
    const child: ChildProcess = spawn(tool.path, argumentsOf(tool, target.pid), {
      stdio: ['ignore', 'pipe', 'pipe'],
      // Ctrl-C in a terminal would end it in the middle of a look.
      detached: true,
      // eu-stack would ask servers for symbols.
      env: { ...process.env, DEBUGINFOD_URLS: '', NO_COLOR: '1', RUST_LOG: '', RUST_BACKTRACE: '' },
    });
    breakOff = (reason) => {
      why ??= reason;
      endProcessGroup(child);
    };
    const timer = setTimeout(() => breakOff('it took longer than ten seconds'), LOOK_LIMIT * 1e3);
    const out: Buffer[] = [];
    let length = 0;
    let error = '';
    child.stdout?.on('data', (chunk: Buffer) => {
      length += chunk.length;
      if (length <= OUTPUT_LIMIT) out.push(chunk);
      else breakOff('it printed more than 64 MiB');
    });
    child.stderr?.on('data', (chunk: Buffer) => {
      error = (error + chunk.toString()).slice(-ERROR_LIMIT);
    });
    const finish = (code: number | null, failure: string): void => {
      clearTimeout(timer);
      resolve({ code, out: Buffer.concat(out).toString(), error: failure });
    };
    child.once('error', (failed) => finish(null, failed.message));
    child.once('close', (code) => finish(code, error));
  });
  breakOff = () => {};
  const read = why === null ? parsed(tool, ended) : { stacks: null, reason: why };
  if (read.stacks === null) await release(target, watch);
  watch.end();
  const { held, longest } = watch;
  return { ...read, held, longest, states };
}

interface Ended {
  readonly code: number | null;
  readonly out: string;
  readonly error: string;
}

function argumentsOf({ name }: NativeTool, pid: number): readonly string[] {
  return name === 'py-spy'
    ? ['dump', '--native', '--json', '--pid', String(pid)]
    : ['-m', '-n', '512', '-p', String(pid)];
}

function parsed(
  { name }: NativeTool,
  { code, out, error }: Ended,
): { readonly stacks: NativeStacks | null; readonly reason: string | null } {
  // eu-stack ends with 1 where a part could not be read: the rest is right.
  if (code === 0 || (name === 'eu-stack' && code === 1)) {
    try {
      const stacks = name === 'py-spy' ? parsePySpy(out) : parseEuStack(out);
      if (stacks.threads.some(({ frames }) => frames.length > 0)) return { stacks, reason: null };
    } catch {
      return { stacks: null, reason: 'what it printed could not be read' };
    }
  }
  const last = error.trim().split('\n').at(-1) ?? '';
  return {
    stacks: null,
    reason: last === '' ? `it ended with code ${code}` : printable(last, 300),
  };
}

/** The kernel lets go of what a killed tool held; but one that it had stopped by a signal stays so. */
async function release(target: ProcessTarget, watch: HoldWatch): Promise<void> {
  for (let tries = 0; tries < RELEASE_TRIES && watch.isHeld(); tries++) {
    letRunAgain(target);
    await pause(RELEASE_PAUSE_MS);
  }
}
