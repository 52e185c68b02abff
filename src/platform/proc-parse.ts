/**
 * The text of `/proc/<pid>/…` as values (formats: proc(5), fs/proc/array.c of Linux 6.x). Every parser is total: text that is not
 * what the kernel writes gives null, a field that is missing gives null or 0, nothing throws.
 */

/** What `/proc/<pid>/stat` says of a process, or of one thread when read below `task/`. */
export interface ProcStat {
  readonly pid: number;
  /** At most 15 bytes that the process chose itself: untrusted, may hold spaces, parentheses and newlines. */
  readonly comm: string;
  /** One letter: R running, S sleeping, D uninterruptible, T stopped, t traced, Z zombie, X dead, I idle kernel thread. */
  readonly state: string;
  readonly parent: number;
  readonly processGroup: number;
  readonly session: number;
  /** The process group in the foreground of its controlling terminal; -1 without one. */
  readonly foregroundGroup: number;
  /** `PF_*` of the kernel; see `isKernelThread`. */
  readonly flags: number;
  readonly minorFaults: number;
  readonly majorFaults: number;
  /** In clock ticks. */
  readonly userTicks: number;
  /** In clock ticks. */
  readonly systemTicks: number;
  readonly threads: number;
  /** In clock ticks since boot. */
  readonly startTicks: number;
  readonly virtualBytes: number;
  /** Address at which its stack began when it last ran exec; 0 unless the reader may ptrace the process. */
  readonly stackStart: number;
  /** In wait(2) encoding; 0 unless the reader may ptrace the process, and until it ends. */
  readonly exitStatus: number;
}

/** `PF_KTHREAD`, include/linux/sched.h. */
const KERNEL_THREAD = 0x0020_0000;

export function isKernelThread(stat: Pick<ProcStat, 'flags'>): boolean {
  return (stat.flags & KERNEL_THREAD) !== 0;
}

/**
 * Zombie or dead: its program has ended, whether or not its parent has noticed. A main thread that ended before the others is a
 * zombie too, but then they still count.
 */
export function hasEnded(stat: Pick<ProcStat, 'state' | 'threads'>): boolean {
  return /^[ZXx]$/.test(stat.state) && stat.threads <= 1;
}

/** Null when the text is not a `stat` line. */
export function parseStat(text: string): ProcStat | null {
  // The name may hold anything, also `) R 1`; nothing after it holds a parenthesis, so the last one ends it.
  const open = text.indexOf('(');
  const close = text.lastIndexOf(')');
  if (open < 1 || close < open) return null;
  const pid = Number(text.slice(0, open));
  const fields = text
    .slice(close + 1)
    .trim()
    .split(' ');
  // `at(3)` is field 3 of proc(5), the state.
  const at = (field: number): number => wholeNumber(fields[field - 3]);
  const state = fields[0] ?? '';
  if (!Number.isSafeInteger(pid) || pid < 0 || !/^[A-Za-z]$/.test(state) || fields.length < 20)
    return null;
  return {
    pid,
    comm: text.slice(open + 1, close),
    state,
    parent: at(4),
    processGroup: at(5),
    session: at(6),
    foregroundGroup: at(8),
    flags: at(9),
    minorFaults: at(10),
    majorFaults: at(12),
    userTicks: at(14),
    systemTicks: at(15),
    threads: at(20),
    startTicks: at(22),
    virtualBytes: at(23),
    stackStart: at(28),
    exitStatus: at(52),
  };
}

/** The lines of `/proc/<pid>/status` that are used here. Null marks a line the kernel did not write. */
export interface ProcStatus {
  readonly name: string;
  /** The process a thread belongs to: differs from the pid asked for when that is a thread's. */
  readonly threadGroup: number | null;
  readonly parent: number | null;
  /** 0: nobody traces it. */
  readonly tracer: number;
  /** Real, effective, saved, file system. */
  readonly uids: readonly number[];
  /** Real, effective, saved, file system. */
  readonly gids: readonly number[];
  /** The pid in each pid namespace, from that of the mounted /proc to the process's own. */
  readonly namespacePids: readonly number[];
  readonly threads: number | null;
  readonly residentBytes: number | null;
  /** Parts of the resident: heaps and stacks; mapped files; shared memory. Since Linux 4.5. */
  readonly anonymousBytes: number | null;
  readonly fileBytes: number | null;
  readonly sharedBytes: number | null;
  readonly virtualBytes: number | null;
  readonly swapBytes: number | null;
  /** Bit n−1 is signal n. */
  readonly caughtSignals: bigint;
  readonly effectiveCapabilities: bigint;
  readonly permittedCapabilities: bigint;
  /** 0 none, 1 strict, 2 filter. */
  readonly seccomp: number;
}

/** Null when the text holds no `Name:` line. */
export function parseStatus(text: string): ProcStatus | null {
  const lines = new Map<string, string>();
  for (const line of text.split('\n')) {
    const colon = line.indexOf(':');
    // The kernel escapes newlines in Name, so the first line of a key is the true one; a later one would be forged.
    if (colon > 0 && !lines.has(line.slice(0, colon)))
      lines.set(line.slice(0, colon), line.slice(colon + 1).trim());
  }
  const name = lines.get('Name');
  if (name === undefined) return null;
  const numberOf = (key: string): number | null => {
    const value = lines.get(key);
    return value === undefined || !/^\d+/.test(value) ? null : wholeNumber(value.split(/\s/, 1)[0]);
  };
  const bytesOf = (key: string): number | null => {
    const kibibytes = numberOf(key);
    return kibibytes === null ? null : kibibytes * 1024;
  };
  const numbersOf = (key: string): readonly number[] =>
    (lines.get(key) ?? '').split(/\s+/).filter(Boolean).map(wholeNumber);
  const maskOf = (key: string): bigint => {
    const value = lines.get(key) ?? '';
    return /^[0-9a-f]{1,32}$/i.test(value) ? BigInt(`0x${value}`) : 0n;
  };
  return {
    name,
    threadGroup: numberOf('Tgid'),
    parent: numberOf('PPid'),
    tracer: numberOf('TracerPid') ?? 0,
    uids: numbersOf('Uid'),
    gids: numbersOf('Gid'),
    namespacePids: numbersOf('NSpid'),
    threads: numberOf('Threads'),
    residentBytes: bytesOf('VmRSS'),
    anonymousBytes: bytesOf('RssAnon'),
    fileBytes: bytesOf('RssFile'),
    sharedBytes: bytesOf('RssShmem'),
    virtualBytes: bytesOf('VmSize'),
    swapBytes: bytesOf('VmSwap'),
    caughtSignals: maskOf('SigCgt'),
    effectiveCapabilities: maskOf('CapEff'),
    permittedCapabilities: maskOf('CapPrm'),
    seccomp: numberOf('Seccomp') ?? 0,
  };
}

/** Context switches of one thread. */
export interface ProcSwitches {
  readonly voluntary: number;
  readonly involuntary: number;
}

/** The two last lines of `status`, without the price of parsing the rest: it is read for every busy thread. */
export function parseSwitches(status: string): ProcSwitches | null {
  const match = /^voluntary_ctxt_switches:\s*(\d+)\nnonvoluntary_ctxt_switches:\s*(\d+)/m.exec(
    status.slice(status.lastIndexOf('\nvoluntary') + 1),
  );
  if (match === null) return null;
  return { voluntary: wholeNumber(match[1]), involuntary: wholeNumber(match[2]) };
}

/** `/proc/<pid>/task/<tid>/schedstat`: how long one thread ran and waited, since it began. */
export interface ProcSchedstat {
  readonly onCpuNs: number;
  /** Runnable, but another had the core. */
  readonly runQueueWaitNs: number;
  readonly timeslices: number;
}

/** Null on a kernel without CONFIG_SCHED_INFO, which writes `0 0 0`, and for anything that is not three numbers. */
export function parseSchedstat(text: string): ProcSchedstat | null {
  const match = /^(\d+) (\d+) (\d+)/.exec(text);
  if (match === null) return null;
  const [onCpuNs, runQueueWaitNs, timeslices] = match.slice(1).map(wholeNumber);
  if (onCpuNs === undefined || runQueueWaitNs === undefined || timeslices === undefined)
    return null;
  return onCpuNs + runQueueWaitNs + timeslices === 0
    ? null
    : { onCpuNs, runQueueWaitNs, timeslices };
}

/** `/proc/<pid>/io`, in bytes. */
export interface ProcIo {
  /** Through read calls, from wherever: pages in cache, pipes, sockets. */
  readonly readCalls: number;
  readonly writeCalls: number;
  /** What storage had to deliver. */
  readonly readStorage: number;
  readonly writeStorage: number;
}

export function parseIo(text: string): ProcIo | null {
  const valueOf = (key: string): number | null => {
    const match = new RegExp(`^${key}: (\\d+)$`, 'm').exec(text);
    return match === null ? null : wholeNumber(match[1]);
  };
  const readCalls = valueOf('rchar');
  const writeCalls = valueOf('wchar');
  if (readCalls === null || writeCalls === null) return null;
  // Absent without CONFIG_TASK_IO_ACCOUNTING.
  const readStorage = valueOf('read_bytes') ?? 0;
  return { readCalls, writeCalls, readStorage, writeStorage: valueOf('write_bytes') ?? 0 };
}

/** What `/proc/<pid>/task/<tid>/syscall` says: where a thread is parked. */
export type ProcSyscall =
  | { readonly kind: 'running' }
  /** Asleep, but not inside a system call (a page fault, a stop). */
  | { readonly kind: 'blocked'; readonly stackPointer: number }
  | {
      readonly kind: 'syscall';
      readonly number: number;
      /** Six; exact below 2^53, which file descriptors, sizes and user-space addresses are. */
      readonly arguments: readonly number[];
      readonly stackPointer: number;
    };

export function parseSyscall(text: string): ProcSyscall | null {
  const fields = text.trim().split(' ');
  if (fields[0] === 'running') return { kind: 'running' };
  const number = Number(fields[0]);
  if (fields[0] === '' || !Number.isSafeInteger(number)) return null;
  const words = fields.slice(1).map(Number);
  if (words.some((word) => !Number.isFinite(word))) return null;
  const stackPointer = words.at(-2);
  if (stackPointer === undefined) return null;
  if (number < 0) return { kind: 'blocked', stackPointer };
  return { kind: 'syscall', number, arguments: words.slice(0, -2), stackPointer };
}

/** epoll_wait, epoll_pwait, epoll_pwait2 on x86-64 (arch/x86/entry/syscalls/syscall_64.tbl). */
const EPOLL_CALLS: ReadonlySet<number> = new Set([232, 281, 441]);

/** The epoll descriptor that a thread is parked on: the first argument of its call; null when it is not in such a call. */
export function epollDescriptor(call: ProcSyscall | null): number | null {
  if (call?.kind !== 'syscall' || !EPOLL_CALLS.has(call.number)) return null;
  return call.arguments[0] ?? null;
}

/** What {@link epollDescriptor} makes of a syscall file, straight from its bytes: the sampler looks 80 times a second. */
export function epollDescriptorIn(bytes: Uint8Array, length: number): number | null {
  const space = bytes.indexOf(SPACE);
  if (space <= 0 || space >= length) return null; // `running`
  const call = digits(bytes, 0, space);
  // The arguments are hexadecimal: ` 0x5`.
  const end = bytes.indexOf(SPACE, space + 1);
  if (!EPOLL_CALLS.has(call) || end < 0 || end >= length) return null;
  let descriptor = 0;
  for (let i = space + 3; i < end; i++) {
    const byte = bytes[i] ?? 0;
    const digit = byte >= LOWER_A ? byte - LOWER_A + 10 : byte - ZERO;
    if (digit < 0 || digit > 15) return null;
    descriptor = descriptor * 16 + digit;
  }
  return descriptor;
}

/** The three numbers of a schedstat file into `into`, straight from its bytes; false when it holds none, or nothing but zeros. */
export function schedstatIn(bytes: Uint8Array, length: number, into: Float64Array): boolean {
  let from = 0;
  for (let field = 0; field < 3; field++) {
    let to = from;
    while (to < length && isDigit(bytes[to])) to++;
    if (to === from) return false;
    into[field] = digits(bytes, from, to);
    from = to + 1;
  }
  return (into[0] ?? 0) + (into[1] ?? 0) + (into[2] ?? 0) > 0;
}

const SPACE = 0x20;
const ZERO = 0x30;
const LOWER_A = 0x61;

function isDigit(byte: number | undefined): boolean {
  return byte !== undefined && byte >= ZERO && byte <= ZERO + 9;
}

/** A decimal number; −1 where something else stands there. */
function digits(bytes: Uint8Array, from: number, to: number): number {
  let value = 0;
  for (let i = from; i < to; i++) {
    if (!isDigit(bytes[i])) return -1;
    value = value * 10 + ((bytes[i] ?? 0) - ZERO);
  }
  return value;
}

function wholeNumber(text: string | undefined): number {
  const value = Number(text ?? 0);
  return Number.isFinite(value) ? value : 0;
}
