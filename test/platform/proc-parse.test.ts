import { readFileSync } from 'node:fs';
import { describe, expect, it } from 'vitest';
import {
  hasEnded,
  isKernelThread,
  parseIo,
  epollDescriptor,
  epollDescriptorIn,
  parseSchedstat,
  schedstatIn,
  parseStat,
  parseStatus,
  parseSwitches,
  parseSyscall,
} from '../../src/platform/proc-parse.ts';

/** Linux 6.18, `/proc/<pid>/stat` of a Python server; only the name varies below. */
const statLine = (name: string): string =>
  `4312 (${name}) S 17 4312 17 34816 4312 4194304 2012 5 3 0 137 42 0 0 20 0 4 0 183758 243519488 3379 18446744073709551615 4194304 4198400 140730000000000 0 0 0 0 16781312 2 0 0 0 17 1 0 0 0 0 0 4210688 4214784 40960 140730000000001 140730000000002 140730000000003 140730000000004 768\n`;

const STATUS = `Name:\tuvicorn: main
Umask:\t0022
State:\tS (sleeping)
Tgid:\t4312
Ngid:\t0
Pid:\t4312
PPid:\t17
TracerPid:\t0
Uid:\t1001\t1002\t1003\t1004
Gid:\t100\t100\t100\t100
FDSize:\t64
Groups:\t4 27 100
NStgid:\t4312\t9
NSpid:\t4312\t9
VmSize:\t  237812 kB
VmRSS:\t   13516 kB
RssAnon:\t    6000 kB
RssFile:\t    7500 kB
RssShmem:\t      16 kB
VmSwap:\t      12 kB
Threads:\t4
SigCgt:\t0000000180004a02
CapPrm:\t0000000000000400
CapEff:\t000001ffffffffff
Seccomp:\t2
voluntary_ctxt_switches:\t888
nonvoluntary_ctxt_switches:\t451
`;

describe('parseStat', () => {
  it('reads the fields by their number in proc(5)', () => {
    expect(parseStat(statLine('python3.11'))).toEqual({
      pid: 4312,
      comm: 'python3.11',
      state: 'S',
      parent: 17,
      processGroup: 4312,
      session: 17,
      foregroundGroup: 4312,
      flags: 4194304,
      minorFaults: 2012,
      majorFaults: 3,
      userTicks: 137,
      systemTicks: 42,
      threads: 4,
      startTicks: 183758,
      virtualBytes: 243519488,
      stackStart: 140730000000000,
      exitStatus: 768,
    });
  });

  it.each(['a b', '(sd-pam)', 'x) R 1 2 3', ') Z (', 'tmux: server', '\n', 'naïve'])(
    'is not misled by a process that calls itself %j',
    (name) => {
      expect(parseStat(statLine(name))).toMatchObject({
        comm: name,
        state: 'S',
        startTicks: 183758,
      });
    },
  );

  it('gives null for what is not a stat line', () => {
    for (const text of ['', ' ', 'x', '1 (a)', '1 (a) S 2', 'x (a) S 2 3', '(a) S', '1 )a( S'])
      expect(parseStat(text)).toBeNull();
  });

  it('knows kernel threads by their flag, and ended processes by their state', () => {
    const kthreadd = '2 (kthreadd) S 0 0 0 0 -1 2129984 0 0 0 0 0 0 0 0 20 0 1 0 5 0 0 0\n';
    expect(isKernelThread(parseStat(kthreadd) ?? { flags: 0 })).toBe(true);
    expect(isKernelThread(parseStat(statLine('kthreadd')) ?? { flags: -1 })).toBe(false);
    expect(hasEnded({ state: 'Z', threads: 1 })).toBe(true);
    expect(hasEnded({ state: 'S', threads: 1 })).toBe(false);
    // pthread_exit in main(): the rest of the program lives on.
    expect(hasEnded({ state: 'Z', threads: 3 })).toBe(false);
  });
});

describe('parseStatus', () => {
  it('reads ids, sizes in bytes and masks', () => {
    expect(parseStatus(STATUS)).toEqual({
      name: 'uvicorn: main',
      threadGroup: 4312,
      parent: 17,
      tracer: 0,
      uids: [1001, 1002, 1003, 1004],
      gids: [100, 100, 100, 100],
      namespacePids: [4312, 9],
      threads: 4,
      residentBytes: 13516 * 1024,
      anonymousBytes: 6000 * 1024,
      fileBytes: 7500 * 1024,
      sharedBytes: 16 * 1024,
      virtualBytes: 237812 * 1024,
      swapBytes: 12 * 1024,
      caughtSignals: 0x180004a02n,
      effectiveCapabilities: 0x1ffffffffffn,
      permittedCapabilities: 0x400n,
      seccomp: 2,
    });
  });

  it('gives null for lines that a kernel thread or an older kernel does not have', () => {
    expect(parseStatus('Name:\tkthreadd\nPid:\t2\n')).toMatchObject({
      residentBytes: null,
      threads: null,
      namespacePids: [],
      effectiveCapabilities: 0n,
    });
    expect(parseStatus('')).toBeNull();
  });

  it('takes the first line of a name, so that a later one cannot replace it', () => {
    expect(parseStatus(`${STATUS}Uid:\t0\t0\t0\t0\n`)?.uids).toEqual([1001, 1002, 1003, 1004]);
  });
});

describe('the smaller files', () => {
  it('reads schedstat, and takes the zeros of a kernel that does not count for "not known"', () => {
    expect(parseSchedstat('2437218 120981 42\n')).toEqual({
      onCpuNs: 2437218,
      runQueueWaitNs: 120981,
      timeslices: 42,
    });
    expect(parseSchedstat('0 0 0\n')).toBeNull();
    expect(parseSchedstat('')).toBeNull();
  });

  it('tells the bytes of calls from those of storage', () => {
    const text =
      'rchar: 1353168\nwchar: 7\nsyscr: 154\nsyscw: 1\nread_bytes: 4096\nwrite_bytes: 8192\ncancelled_write_bytes: 0\n';
    expect(parseIo(text)).toEqual({
      readCalls: 1353168,
      writeCalls: 7,
      readStorage: 4096,
      writeStorage: 8192,
    });
    expect(parseIo('rchar: 1\nwchar: 2\n')).toMatchObject({ readStorage: 0, writeStorage: 0 });
    expect(parseIo('')).toBeNull();
  });

  it('reads context switches without the rest of status', () => {
    expect(parseSwitches(STATUS)).toEqual({ voluntary: 888, involuntary: 451 });
    expect(parseSwitches(`${STATUS}x86_Thread_features:\t\n`)).toEqual({
      voluntary: 888,
      involuntary: 451,
    });
    expect(parseSwitches('Name:\tx\n')).toBeNull();
  });

  it('reads where a thread is parked', () => {
    expect(parseSyscall('running\n')).toEqual({ kind: 'running' });
    expect(parseSyscall('-1 0x7ffd4be1a350 0x7f2c1f1\n')).toEqual({
      kind: 'blocked',
      stackPointer: 0x7ffd4be1a350,
    });
    expect(
      parseSyscall('281 0xd 0x7f00 0x400 0xffffffffffffffff 0x0 0x8 0x7ffd4be1a350 0x7f2c1f1\n'),
    ).toEqual({
      kind: 'syscall',
      number: 281,
      arguments: [13, 0x7f00, 0x400, 2 ** 64, 0, 8],
      stackPointer: 0x7ffd4be1a350,
    });
    for (const text of ['', '\n', '281', 'x 0x1', '281 0x1 zz 0x2'])
      expect(parseSyscall(text)).toBeNull();
  });
});

describe('the parsers of bytes', () => {
  const bytesOf = (text: string): [Buffer, number] => [
    // As in a kept file: what an earlier, longer reading left stands behind.
    Buffer.from(`${text}7 0x7 0x7 0x7 7 7 7`),
    Buffer.byteLength(text),
  ];

  it.each([
    '232 0x5 0x7ffd 0x400 0xffffffffffffffff 0x0 0x8 0x7ffd3c 0x7f21\n',
    '281 0x1f 0x0 0x0 0x0 0x0 0x8 0x7ffd3c 0x7f21\n',
    '441 0xab 0x0 0x0 0x0 0x0 0x8 0x7ffd3c 0x7f21\n',
    '202 0x5 0x0 0x0 0x0 0x0 0x8 0x7ffd3c 0x7f21\n',
    '-1 0x7ffd3c 0x7f21\n',
    'running\n',
    '232\n',
    '',
    ' 232 0x5\n',
  ])('find the same epoll descriptor in %j', (text) => {
    expect(epollDescriptorIn(...bytesOf(text))).toBe(epollDescriptor(parseSyscall(text)));
  });

  it.each(['2437218 120981 42\n', '0 0 0\n', '1 2', '', '1 x 3', '9007199254740991 5 6\n'])(
    'find the same numbers in %j',
    (text) => {
      const into = new Float64Array(3);
      const found = schedstatIn(...bytesOf(text), into);
      const parsed = parseSchedstat(text);
      expect(found).toBe(parsed !== null);
      if (parsed === null) return;
      expect([...into]).toEqual([parsed.onCpuNs, parsed.runQueueWaitNs, parsed.timeslices]);
    },
  );

  it('take nothing from a file that could not be read', () => {
    const [bytes] = bytesOf('232 0x5 0x0\n');
    expect(epollDescriptorIn(bytes, -1)).toBeNull();
    expect(schedstatIn(bytes, -1, new Float64Array(3))).toBe(false);
  });
});

describe('every parser', () => {
  const parsers = { parseStat, parseStatus, parseSchedstat, parseIo, parseSyscall, parseSwitches };
  const real = ['stat', 'status', 'schedstat', 'io', 'syscall'].map((name) =>
    readFileSync(`/proc/self/${name}`, 'utf8'),
  );

  it.each(Object.entries(parsers))(
    '%s takes any part of any of these files without throwing',
    (_, parse) => {
      for (const text of [...real, STATUS, '\0'.repeat(64), 'ÿ'.repeat(64)]) {
        for (let cut = 0; cut <= text.length; cut += 1 + (text.length >> 8)) {
          expect(() => [parse(text.slice(0, cut)), parse(text.slice(cut))]).not.toThrow();
        }
      }
    },
  );

  it('understands what this kernel writes', () => {
    const [stat = '', status = '', schedstat = '', io = ''] = real;
    expect(parseStat(stat)?.pid).toBe(process.pid);
    expect(parseStatus(status)?.threadGroup).toBe(process.pid);
    expect(parseSwitches(status)?.voluntary).toBeGreaterThan(0);
    expect(parseSchedstat(schedstat)?.timeslices).toBeGreaterThan(0);
    expect(parseIo(io)?.readCalls).toBeGreaterThan(0);
  });
});
