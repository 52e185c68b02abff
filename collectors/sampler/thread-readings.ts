import { readlinkSync } from 'node:fs';
import { FRACTION } from '../../src/core/fraction.ts';
import { V8_COLLECTOR } from '../../src/core/place.ts';
import type { Frame, Seconds, MechanismOf } from '../../src/core/types.ts';
import { KeptFile } from '../../src/platform/proc-kept-file.ts';
import { threadIds } from '../../src/platform/proc.ts';
import { parseSyscall, schedstatIn } from '../../src/platform/proc-parse.ts';
import type { ThreadReadings } from './loop-observer.ts';
import type { BlockMessage } from './messages.ts';
import type { LoopKind } from './turn-watch.ts';

/** The calls in which an event loop's thread is found blocked, by number on x86_64 (arch/x86/entry/syscalls/syscall_64.tbl). */
const SYSCALLS_X86_64: Readonly<Record<number, string>> = {
  0: 'read',
  1: 'write',
  2: 'open',
  7: 'poll',
  17: 'pread64',
  18: 'pwrite64',
  19: 'readv',
  20: 'writev',
  23: 'select',
  34: 'pause',
  35: 'nanosleep',
  42: 'connect',
  43: 'accept',
  44: 'sendto',
  45: 'recvfrom',
  46: 'sendmsg',
  47: 'recvmsg',
  61: 'wait4',
  72: 'fcntl',
  73: 'flock',
  74: 'fsync',
  75: 'fdatasync',
  82: 'rename',
  87: 'unlink',
  128: 'rt_sigtimedwait',
  202: 'futex',
  230: 'clock_nanosleep',
  232: 'epoll_wait',
  247: 'waitid',
  257: 'openat',
  262: 'newfstatat',
  270: 'pselect6',
  271: 'ppoll',
  277: 'sync_file_range',
  281: 'epoll_pwait',
  285: 'fallocate',
  288: 'accept4',
  332: 'statx',
  426: 'io_uring_enter',
  441: 'epoll_pwait2',
};

/** Calls whose first argument is the descriptor that explains the wait. */
const ON_DESCRIPTOR = new Set([
  'read',
  'write',
  'pread64',
  'pwrite64',
  'readv',
  'writev',
  'connect',
  'sendto',
  'recvfrom',
  'sendmsg',
  'recvmsg',
  'flock',
  'fsync',
  'fdatasync',
  'fallocate',
]);

/** select and pselect6 (which glibc 2.34 makes of it): with no descriptors that is how CPython before 3.11 sleeps. */
const SELECTS: ReadonlySet<number> = new Set([23, 270]);
/** poll and ppoll: the number of descriptors is the second argument. */
const POLLS: ReadonlySet<number> = new Set([7, 271]);

/**
 * What may be told of a block while it lasts; the rest is told from several, or from the whole
 * recording.
 */
type BlockMechanism = Exclude<MechanismOf<'loop-blocked'>, 'quadratic work' | 'import' | 'starved'>;

/** Functions of Python's standard library that wait for what their system calls do not tell: reading a pipe, a datagram, a file. */
const WAITING_CODE: readonly (readonly [file: RegExp, name: RegExp, mechanism: BlockMechanism])[] =
  [
    [/(?:^|\/)socket\.py$/, /^getaddrinfo$/, 'dns'],
    [/(?:^|\/)subprocess\.py$/, /(?:^|\.)(?:_?communicate|_?wait|_execute_child)$/, 'subprocess'],
  ];
/** Of its innermost frames, so many may lie between such a function and the kernel. */
const WAITING_DEPTH = 4;
/** Not waits: a thread that computes, or is kept by the interpreter. */
const KEPT: ReadonlySet<BlockMechanism> = new Set(['cpu', 'gil', 'gc']);

/** What a blocked loop waits for, from the calls and the code that it was seen in: the key of the finding's advice. */
export function mechanismOf(
  { syscalls, files }: Pick<BlockMessage, 'syscalls' | 'files'>,
  loop: LoopKind,
  frames: readonly Frame[] = [],
): BlockMechanism {
  if (loop === 'libuv' && frames[0]?.function === V8_COLLECTOR) return 'gc';
  const called = mechanismOfCalls(syscalls, files, loop);
  if (KEPT.has(called)) return called;
  for (const { file, function: name } of frames.slice(0, WAITING_DEPTH))
    for (const [ofFile, ofName, mechanism] of WAITING_CODE)
      if (ofFile.test(file) && ofName.test(name)) return mechanism;
  return called;
}

function mechanismOfCalls(
  syscalls: ReadonlyMap<string, number>,
  files: readonly string[],
  loop: LoopKind,
): BlockMechanism {
  let most = '';
  for (const [name, seen] of syscalls) if (seen > (syscalls.get(most) ?? 0)) most = name;
  if (most === 'nanosleep' || most === 'clock_nanosleep' || most === 'sleep') return 'sleep';
  if (most === 'gil' || most === 'gc') return most;
  if (most === 'futex') return 'lock';
  if (most === 'wait4' || most === 'waitid') return 'subprocess';
  if (
    /^(?:connect|accept4?|sendto|recvfrom|sendmsg|recvmsg|poll|ppoll|select|pselect6)$/.test(most)
  ) {
    return 'network-io';
  }
  // The only loop that Node runs inside its main loop is the one in which spawnSync and its like wait for the child.
  if (most.startsWith('epoll_')) return loop === 'libuv' ? 'subprocess' : 'nested-poll';
  if (/^(?:read|write|readv|writev)$/.test(most)) {
    return files.some((file) => file.startsWith('socket:'))
      ? 'network-io'
      : files.some((file) => file.startsWith('pipe:'))
        ? 'pipe'
        : 'file-io';
  }
  if (most === 'running') return 'cpu';
  if (most === 'blocked') return 'page-fault';
  return most === '' || most === 'unknown' || most.startsWith('syscall ') ? 'unknown' : 'file-io';
}

/** Threads whose waits are read at once: 10 µs each. */
const OTHERS_LIMIT = 64;

/** The first letter of `running`; every other answer begins with a digit or a sign. */
const RUNNING = 0x72;

/** `/proc/<pid>/task/<tid>/{schedstat,syscall}` with kept descriptors: 2 µs a reading. */
export class ProcThreadReadings implements ThreadReadings {
  cpu: Seconds = FRACTION;
  wait: Seconds = FRACTION;
  readonly #pid: number;
  readonly #tid: number;
  readonly #schedstat: KeptFile;
  readonly #syscall: KeptFile | null;
  /** On a core, waiting for one (nanoseconds), times scheduled. */
  readonly #numbers = new Float64Array(3);
  /** Times scheduled at the last question whether it stayed asleep; 0 where the kernel does not count. */
  #scheduled = 0;
  /** It was seen asleep after that count was taken, or has been since. */
  #asleep = false;

  /** Throws the errno error when the thread is not there. A `syscall` file that may not be read is done without. */
  constructor(pid: number, tid: number) {
    this.#pid = pid;
    this.#tid = tid;
    this.#schedstat = new KeptFile(`/proc/${pid}/task/${tid}/schedstat`, 128);
    this.#syscall = KeptFile.open(`/proc/${pid}/task/${tid}/syscall`, 256);
  }

  refresh(): boolean {
    const length = this.#schedstat.read();
    if (length < 0) return false;
    if (schedstatIn(this.#schedstat.buffer, length, this.#numbers)) {
      this.cpu = (this.#numbers[0] ?? 0) / 1e9;
      this.wait = (this.#numbers[1] ?? 0) / 1e9;
    }
    return true;
  }

  /**
   * A thread that was found asleep and has not been given a core since has changed nothing of its own. The count is read before the
   * state: the other way round, it could wake and be counted in between, run, and go to sleep again under the same count.
   */
  staysAsleep(): boolean {
    this.#numbers.fill(0);
    const isThere = this.refresh();
    const scheduled = this.#numbers[2] ?? 0;
    const stayed = isThere && this.#asleep && scheduled > 0 && scheduled === this.#scheduled;
    this.#scheduled = scheduled;
    // `running` stands for runnable too; a thread that the kernel blocks outside a call sleeps as well.
    if (!stayed) this.#asleep = scheduled > 0 && isAsleepIn(this.#syscall);
    return stayed;
  }

  othersWaits(): ReadonlyMap<number, Seconds> {
    const waits = new Map<number, Seconds>();
    const numbers = new Float64Array(3);
    for (const id of threadIds(this.#pid).slice(0, OTHERS_LIMIT)) {
      if (id === this.#tid) continue;
      const file = KeptFile.open(`/proc/${this.#pid}/task/${id}/schedstat`, 128);
      if (file === null) continue;
      const length = file.read();
      if (length > 0 && schedstatIn(file.buffer, length, numbers))
        waits.set(id, (numbers[1] ?? 0) / 1e9);
      file.close();
    }
    return waits;
  }

  syscall(): { readonly name: string; readonly file: string | null } {
    const text = this.#syscall?.text() ?? null;
    const parsed = text === null ? null : parseSyscall(text);
    if (parsed === null) return { name: 'unknown', file: null };
    if (parsed.kind !== 'syscall') return { name: parsed.kind, file: null };
    const { number } = parsed;
    const [first = -1, second = -1] = parsed.arguments;
    const waitsForNothing = SELECTS.has(number) ? first === 0 : POLLS.has(number) && second === 0;
    if (waitsForNothing) return { name: 'sleep', file: null };
    const name =
      (process.arch === 'x64' ? SYSCALLS_X86_64[number] : undefined) ?? `syscall ${number}`;
    return { name, file: ON_DESCRIPTOR.has(name) ? this.#descriptor(first) : null };
  }

  close(): void {
    this.#schedstat.close();
    this.#syscall?.close();
  }

  #descriptor(fd: number): string | null {
    try {
      return readlinkSync(`/proc/${this.#pid}/fd/${fd}`);
    } catch {
      return null;
    }
  }
}

/** Whether a `syscall` file, read now, says that its thread is off the core: anything but `running`. */
function isAsleepIn(file: KeptFile | null): boolean {
  if (file === null) return false;
  const length = file.read();
  return length > 0 && file.buffer[0] !== RUNNING;
}
