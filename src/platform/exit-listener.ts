import { type ChildProcess, spawn } from 'node:child_process';
import { readlinkSync } from 'node:fs';
import { createInterface } from 'node:readline';
import { Readable } from 'node:stream';
import { programFor } from './find-program.ts';

/**
 * How processes of this machine end, also those whose parent takes the exit status at once: from the kernel's process connector (netlink
 * `NETLINK_CONNECTOR`, Documentation/driver-api/connector.rst), which tells root of each exit. Node has no netlink sockets; Python's standard
 * library has, so a small Python process listens, and ends when we do. Where there is no Python, no root, or a pid namespace of our own, nothing
 * is heard and nothing said: then only what a zombie still shows is known.
 */

/**
 * A classic BPF filter lets nothing but exits of whole processes wake it: `what` at byte 36 is PROC_EVENT_EXIT, the pid at 52 equals the tgid at
 * 56 (`struct proc_event` in linux/cn_proc.h, in the machine's byte order, which the filter reads as big-endian).
 */
const LISTENER = `
import ctypes, os, select, socket, struct, sys
EXIT = 0x80000000
s = socket.socket(socket.AF_NETLINK, socket.SOCK_DGRAM, 11)
ops = [(0x20, 0, 0, 36), (0x15, 0, 5, socket.htonl(EXIT)), (0x20, 0, 0, 52), (0x02, 0, 0, 0), (0x20, 0, 0, 56),
       (0x61, 0, 0, 0), (0x1d, 1, 0, 0), (0x06, 0, 0, 0), (0x06, 0, 0, 0xffffffff)]
code = ctypes.create_string_buffer(b"".join(struct.pack("HBBI", *op) for op in ops))
s.setsockopt(socket.SOL_SOCKET, 26, struct.pack("HL", len(ops), ctypes.addressof(code)))
s.bind((0, 1))
body = struct.pack("=IIIIHHI", 1, 1, 0, 0, 4, 0, 1)
s.send(struct.pack("=IHHII", 16 + len(body), 3, 0, 0, os.getpid()) + body)
while True:
    for ready in select.select([s, 0], [], [])[0]:
        if ready == 0:
            sys.exit(0)
        try:
            message = s.recv(4096)
        except OSError:
            continue
        if len(message) >= 64:
            print(*struct.unpack_from("=II", message, 56), flush=True)
`;

/** Exits remembered: those of some minutes on a machine that runs many short commands, 32 KiB from the start. */
const REMEMBERED = 4096;

export class ExitListener {
  /** The latest exits, in a ring: a Map of them is made anew, larger, again and again. */
  readonly #pids = new Int32Array(REMEMBERED);
  readonly #statuses = new Int32Array(REMEMBERED);
  /** Exits heard so far. */
  #heard = 0;
  #child: ChildProcess | null = null;

  /** Begins to listen, where that is possible; until then, and elsewhere, nothing is heard. Starts a process that ends with us. */
  listen(): void {
    if (this.#child !== null || process.getuid?.() !== 0 || !isInFirstNamespace()) return;
    const python = programFor('python3', process.env);
    if (python === null) return;
    const child: ChildProcess = spawn(python, ['-I', '-S', '-c', LISTENER], {
      stdio: ['pipe', 'pipe', 'ignore'],
      cwd: '/',
    });
    this.#child = child;
    // No Python, no such socket, no descriptor: what is not heard is unknown, as it is without a
    // listener.
    child.on('error', () => {});
    child.stdin?.on('error', () => {});
    if (child.stdout instanceof Readable)
      createInterface({ input: child.stdout }).on('line', (line) => this.#take(line));
  }

  /** The wait(2) status with which process `pid` ended, null when that was not heard. */
  statusOf(pid: number): number | null {
    // The newest first: a pid may be given again.
    for (let i = this.#heard - 1; i >= Math.max(0, this.#heard - REMEMBERED); i--)
      if (this.#pids[i % REMEMBERED] === pid) return this.#statuses[i % REMEMBERED] ?? null;
    return null;
  }

  /** Safe to call twice. */
  close(): void {
    this.#child?.stdin?.end();
  }

  #take(line: string): void {
    const [pid, status] = line.split(' ').map(Number);
    if (pid === undefined || status === undefined || Number.isNaN(pid + status)) return;
    this.#pids[this.#heard % REMEMBERED] = pid;
    this.#statuses[this.#heard++ % REMEMBERED] = status;
  }
}

/** The connector speaks of the pids of the first namespace, whose inode is fixed (PROC_PID_INIT_INO in linux/proc_ns.h). */
function isInFirstNamespace(): boolean {
  try {
    return readlinkSync('/proc/self/ns/pid') === 'pid:[4026531836]';
  } catch {
    return false;
  }
}
