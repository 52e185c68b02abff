import { type ChildProcess, spawn } from 'node:child_process';
import { existsSync, mkdirSync, rmdirSync, writeFileSync } from 'node:fs';
import type { ProcessTarget, Seconds } from '../core/types.ts';
import { CdpError, type CdpConnection } from './cdp.ts';
import { descriptorRoom } from './descriptor-count.ts';
import { withAbsolutePath } from './find-program.ts';
import { readProc, readStat } from './proc.ts';
import { hasEnded, parseStatus, type ProcStat } from './proc-parse.ts';
import type { TracingEntry } from './tracing-journal.ts';
import type { UndoEntry } from './undo-journal.ts';
import { isRecord } from '../core/record.ts';

/**
 * The only module that does something to a target: one signal, expressions evaluated through an inspector, what others send passed on to
 * a command that trace started, the end of a trial's processes, a private instance of the kernel's tracing, and a process let run again
 * that a tool of `--native` left stopped.
 * `test/architecture.test.ts` fails when another one could. Every function that changes something of its own accord wants the entry of the
 * undo journal that covers it, so nothing can be done that nobody would undo. Docs: docs/cleanup.md, docs/decisions/0009.
 */

/** What Node opens its inspector at, and its number on x86-64 (`signal(7)`). */
const OPENING_SIGNAL = 'SIGUSR1';
export const OPENING_SIGNAL_NUMBER = 10;
/**
 * Node ends (SIGABRT) with three free descriptors and fewer, and with six cannot close its
 * inspector again: what is asked of it needs some too.
 */
export const LEAST_DESCRIPTORS = 10;
/** The target answers between two turns of its loop, or within one where it runs JavaScript: a long native call delays it. */
const ANSWER_TIMEOUT: Seconds = 2;

/** Why the signal was not sent. */
export type SignalRefusal = 'gone' | 'no-room' | 'not-caught' | 'not-journalled' | 'not-allowed';

/** Whether a process would take the signal as a request, instead of dying of it; null when it cannot be told. */
export function catchesOpeningSignal(pid: number): boolean | null {
  const text = readProc(`/proc/${pid}/status`);
  const status = text === null ? null : parseStatus(text);
  if (status === null) return null;
  return (status.caughtSignals & (1n << BigInt(OPENING_SIGNAL_NUMBER - 1))) !== 0n;
}

/**
 * Asks a Node process to open its inspector. Immediately before, it is made sure once more that the process is the one that was judged, that
 * it catches the signal (its default action is death), that it has descriptors left, and that the
 * journal knows. What happened is seen at the process's sockets only.
 */
export function signalToOpen(target: ProcessTarget, entry: UndoEntry): SignalRefusal | null {
  if (entry.pid !== target.pid || entry.startTicks !== target.startTicks) return 'not-journalled';
  if (entry.stage !== 'signalling') return 'not-journalled';
  if (catchesOpeningSignal(target.pid) !== true) return 'not-caught';
  const room = descriptorRoom(target.pid);
  if (room !== null && room.free < LEAST_DESCRIPTORS) return 'no-room';
  const stat = readStat(target.pid);
  if (stat === null || stat.startTicks !== target.startTicks || hasEnded(stat)) return 'gone';
  try {
    process.kill(target.pid, OPENING_SIGNAL);
    return null;
  } catch (error) {
    return error instanceof Error && 'code' in error && error.code === 'ESRCH'
      ? 'gone'
      : 'not-allowed';
  }
}

/**
 * Ends a command that trace started as the leader of a process group of its own, and all that it started in that group. For those of trials
 * and the tools of `--native`: they are nobody's but ours.
 */
export function endProcessGroup(leader: ChildProcess): void {
  // Without a pid it was never started; 0 would be our own group.
  if (leader.pid === undefined || leader.pid <= 1) return;
  try {
    process.kill(-leader.pid, 'SIGKILL');
  } catch {
    // ESRCH: all of them have ended.
  }
}

/**
 * Ends a process that a trial left behind, wherever it went: the one that was seen, and none that
 * has its pid by now.
 */
export function endLeftProcess({ pid, startTicks }: Pick<ProcStat, 'pid' | 'startTicks'>): void {
  if (pid <= 1 || readStat(pid)?.startTicks !== startTicks) return;
  try {
    process.kill(pid, 'SIGKILL');
  } catch {
    // It has ended, or is another user's.
  }
}

/** The groups that are under way, then what has the mark: twice, for what was started meanwhile. */
const END_OF_TRIALS = `
trap '' HUP INT QUIT TERM
groups=
while read -r what group; do
  case $what in
    begun) groups="$groups $group" ;;
    ended)
      kept=
      for one in $groups; do [ "$one" = "$group" ] || kept="$kept $one"; done
      groups=$kept ;;
  esac
done
[ -n "$groups" ] || exit 0
for one in $groups; do kill -9 "-$one"; done
for round in 1 2; do
  for environ in /proc/[0-9]*/environ; do
    [ -O "$environ" ] || continue
    head -c 2097152 "$environ" | tr '\\0' '\\n' | grep -q "^$0" || continue
    pid=\${environ#/proc/}
    kill -9 "\${pid%/environ}"
  done
done
`;

/**
 * Ends the trials that are under way when this process has ended, however that was. `begun` and
 * `ended` with the leader of a group, a line each, go to its standard input; when that is closed,
 * the groups that began and did not end are killed, and whatever has a variable that begins with
 * `mark`.
 */
export function guardTrials(mark: string): ChildProcess {
  const { PATH } = process.env;
  const guardian: ChildProcess = spawn('/bin/sh', ['-c', END_OF_TRIALS, mark], {
    stdio: ['pipe', 'ignore', 'ignore'],
    // A session of its own: what ends trace by its terminal or its group is not for it.
    detached: true,
    cwd: '/',
    // It calls others by their names.
    env: withAbsolutePath({ PATH }),
  });
  guardian.on('error', () => {});
  guardian.stdin?.on('error', () => {});
  guardian.unref();
  return guardian;
}

/**
 * Lets a process run again that a tool which trace had started to look at it left stopped: one that is killed between stopping a process
 * and taking that stop leaves it so. Only where it is stopped by a signal; true where it was sent SIGCONT.
 */
export function letRunAgain(target: ProcessTarget): boolean {
  const stat = readStat(target.pid);
  if (stat === null || stat.startTicks !== target.startTicks || stat.state !== 'T') return false;
  try {
    process.kill(target.pid, 'SIGCONT');
    return true;
  } catch {
    return false; // Gone, or no longer ours to signal.
  }
}

/** Where the kernel's tracing is, where it is mounted; the second as of old. */
const TRACING_ROOTS = ['/sys/kernel/tracing', '/sys/kernel/debug/tracing'] as const;
/** Of each core; 4 MiB hold some 40,000 changes of threads. */
const TRACE_BUFFER_KB = 4096;
const INSTANCE_NAME = /^tracewright-\d+-\d+$/;

/** The folder of the private instances of the kernel's tracing, null where it is not mounted. */
export function traceInstances(): string | null {
  const root = TRACING_ROOTS.find((one) => existsSync(`${one}/instances`));
  return root === undefined ? null : `${root}/instances`;
}

/**
 * Makes the private instance of the kernel's tracing that a journal names, and has it note when threads get and leave a core; gives its folder.
 * Nobody else's tracing is changed. Throws the errno error of the kernel; what was made by then is for {@link removeTraceInstance}.
 */
export function makeTraceInstance({ instance }: TracingEntry, tids: readonly number[]): string {
  const folder = `${instanceFolder(instance)}`;
  mkdirSync(folder);
  const set = (file: string, text: string): void => writeFileSync(`${folder}/${file}`, text);
  set('buffer_size_kb', String(TRACE_BUFFER_KB));
  set('trace_clock', 'mono');
  set('set_event_pid', tids.join(' '));
  // Threads that these start are followed.
  set('options/event-fork', '1');
  for (const event of ['sched_switch', 'sched_wakeup', 'sched_wakeup_new'])
    set(`events/sched/${event}/enable`, '1');
  return folder;
}

/** Removes it; false where it was not there. Throws the errno error: EBUSY while somebody reads it. */
export function removeTraceInstance({ instance }: TracingEntry): boolean {
  const folder = instanceFolder(instance);
  if (!existsSync(folder)) return false;
  rmdirSync(folder);
  return true;
}

/** Removes it when this process has ended, however that was; in a session of its own, until the pipe is closed. */
export function guardTraceInstance({ instance }: TracingEntry): ChildProcess {
  const program =
    'cat; n=0; while [ -d "$0" ] && [ $n -lt 40 ]; do rmdir "$0" && exit; n=$((n + 1)); sleep 0.05; done';
  const guardian = spawn('/bin/sh', ['-c', program, instanceFolder(instance)], {
    stdio: ['pipe', 'ignore', 'ignore'],
    detached: true,
    // It calls rmdir and sleep by their names.
    env: withAbsolutePath(process.env),
  });
  guardian.unref();
  return guardian;
}

function instanceFolder(instance: string): string {
  const folder = traceInstances();
  if (folder === null || !INSTANCE_NAME.test(instance))
    throw new TypeError(`no place for an instance of the name ${instance}`);
  return `${folder}/${instance}`;
}

/** What somebody sends to trace who means the command that it started: it stands in the place where that would be. */
const PASSED_ON = ['SIGTERM', 'SIGHUP', 'SIGINT', 'SIGQUIT', 'SIGUSR1', 'SIGUSR2'] as const;
/** What a terminal sends to everything in its foreground, at Ctrl-C and Ctrl-\. */
const FROM_TERMINAL: ReadonlySet<string> = new Set(['SIGINT', 'SIGQUIT']);

/**
 * Passes on what trace is sent to the command that it started, until the result is called; trace
 * itself does not end by it. What the terminal sends has reached the command already when it stands
 * in the foreground with us: it must not get that twice. To be called before the command is
 * started, which `childOf` then gives: it may say that it runs, and be interrupted, before we go
 * on.
 */
export function passOnSignals(childOf: () => ChildProcess | null): () => void {
  const handlers = PASSED_ON.map((signal) => {
    const handler = (): void => {
      const child = childOf();
      if (child === null) return;
      if (FROM_TERMINAL.has(signal) && sharesForeground(child.pid ?? 0)) return;
      child.kill(signal);
    };
    process.on(signal, handler);
    return { signal, handler };
  });
  return () => {
    for (const { signal, handler } of handlers) process.removeListener(signal, handler);
  };
}

/** Whether a process is with us in the process group that the terminal's keys reach. */
function sharesForeground(pid: number): boolean {
  const own = readStat(process.pid);
  return (
    own !== null &&
    own.foregroundGroup === own.processGroup &&
    readStat(pid)?.processGroup === own.processGroup
  );
}

/** A value of the target, held for us until it is released or our connection ends. */
export interface HeldObject {
  readonly objectId: string;
}

/** Objects of ours in the target, by V8's way of letting go of all of them at once. */
const GROUP = 'tracewright';

/**
 * Evaluates an expression that catches everything it could throw, with Node's `require` for the console in scope. Gives the object it
 * results in, null when it is none. Rejects with a CdpError. `silent`: a debugger that is attached too does not stop at our exceptions.
 */
export async function evaluateToObject(
  connection: CdpConnection,
  expression: string,
  entry: UndoEntry,
): Promise<HeldObject | null> {
  requireJournalled(entry);
  const result = await touchingResult(connection, 'Runtime.evaluate', {
    expression,
    objectGroup: GROUP,
    includeCommandLineAPI: true,
    silent: true,
    disableBreaks: true,
    returnByValue: false,
  });
  return typeof result['objectId'] === 'string' ? { objectId: result['objectId'] } : null;
}

/** The same, for an expression whose value is plain data. */
export async function evaluateToValue(
  connection: CdpConnection,
  expression: string,
  entry: UndoEntry,
): Promise<unknown> {
  requireJournalled(entry);
  const result = await touchingResult(connection, 'Runtime.evaluate', {
    expression,
    includeCommandLineAPI: true,
    silent: true,
    disableBreaks: true,
    returnByValue: true,
  });
  return result['value'];
}

/** Calls a method without arguments of an object that {@link evaluateToObject} gave; the result is plain data. */
export async function callMethod(
  connection: CdpConnection,
  { objectId }: HeldObject,
  method: string,
  timeout: Seconds = ANSWER_TIMEOUT,
): Promise<unknown> {
  if (!/^[a-z]+$/i.test(method)) throw new TypeError(`not a method's name: ${method}`);
  const call = {
    objectId,
    functionDeclaration: `function () { return this.${method}(); }`,
    silent: true,
    returnByValue: true,
  };
  const result = await touchingResult(connection, 'Runtime.callFunctionOn', call, timeout);
  return result['value'];
}

/** Lets V8 drop every object it held for us. Rejects with a CdpError. */
export async function releaseObjects(connection: CdpConnection): Promise<void> {
  await connection.sendUnchecked(
    'Runtime.releaseObjectGroup',
    { objectGroup: GROUP },
    ANSWER_TIMEOUT,
  );
}

/** A journal that has only been begun covers nothing yet. */
function requireJournalled({ stage }: UndoEntry): void {
  if (stage === 'armed') throw new TypeError('nothing is evaluated before the journal says so');
}

async function touchingResult(
  connection: CdpConnection,
  method: string,
  parameters: Readonly<Record<string, unknown>>,
  timeout: Seconds = ANSWER_TIMEOUT,
): Promise<Readonly<Record<string, unknown>>> {
  const answer = await connection.sendUnchecked(method, parameters, timeout);
  const result = isRecord(answer) ? answer['result'] : undefined;
  if (!isRecord(result) || (isRecord(answer) && 'exceptionDetails' in answer))
    throw new CdpError('refused', 'what was evaluated in the target failed there');
  return result;
}
