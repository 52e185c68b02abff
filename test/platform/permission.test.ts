import { readFileSync } from 'node:fs';
import { describe, expect, it } from 'vitest';
import { type AccessFacts, gatherFacts, hidePid } from '../../src/platform/permission-facts.ts';
import { causeOf } from '../../src/platform/permission-message.ts';
import { ownCommandLine, remediesFor } from '../../src/platform/permission-remedies.ts';
import { type AccessMode, forbiddingRule } from '../../src/platform/permission-rules.ts';
import { judgeAccess } from '../../src/platform/permission.ts';
import { listProcesses, readStat, readStatus } from '../../src/platform/proc.ts';
import { findTarget } from '../../src/platform/target.ts';
import { interpreters } from '../environments.ts';
import { end, start, startShell, until } from './processes.ts';

const SYS_PTRACE = 1n << 19n;
const INITIAL = 'user:[4026531837]';

/** Two processes of user 1001 on a machine without Yama; each test changes what it is about. */
function facts(change: {
  own?: Partial<AccessFacts['own']>;
  target?: Partial<AccessFacts['target']>;
  rest?: Partial<AccessFacts>;
}): AccessFacts {
  const identity = {
    uids: [1001, 1001, 1001, 1001],
    gids: [1001, 1001, 1001, 1001],
    effectiveCapabilities: 0n,
    permittedCapabilities: 0n,
    userNamespace: INITIAL,
  };
  return {
    own: { ...identity, pid: 10, ...change.own },
    target: {
      ...identity,
      pid: 20,
      comm: 'python3',
      dumpable: true,
      tracer: 0,
      state: 'S',
      ...change.target,
    },
    isDescendant: false,
    yamaScope: null,
    hidePid: null,
    inContainer: false,
    seccomp: 0,
    securityModules: [],
    ...change.rest,
  };
}

const root = [0, 0, 0, 0];
const capable = { effectiveCapabilities: SYS_PTRACE };

describe('the rule that forbids access (kernel/ptrace.c, security/commoncap.c, security/yama)', () => {
  const cases: [string, Parameters<typeof facts>[0], Record<AccessMode, string | null>][] = [
    ['none for the same user', {}, { read: null, attach: null }],
    [
      'other-user for another user',
      { target: { uids: root } },
      { read: 'other-user', attach: 'other-user' },
    ],
    [
      'other-user for a setuid program, whose ids differ',
      { target: { uids: [1001, 0, 0, 0] } },
      { read: 'other-user', attach: 'other-user' },
    ],
    [
      'other-user for the same user in another group',
      { target: { gids: [5, 5, 5, 5] } },
      { read: 'other-user', attach: 'other-user' },
    ],
    [
      'none with CAP_SYS_PTRACE',
      { own: capable, target: { uids: root, dumpable: false, permittedCapabilities: 1n } },
      { read: null, attach: null },
    ],
    [
      'user-namespace for a capability of a nested namespace',
      {
        own: { ...capable, userNamespace: 'user:[1]' },
        target: { uids: root, userNamespace: null },
      },
      { read: 'user-namespace', attach: 'user-namespace' },
    ],
    [
      'none for a capability within its own nested namespace',
      {
        own: { ...capable, userNamespace: 'user:[1]' },
        target: { uids: root, userNamespace: 'user:[1]' },
      },
      { read: null, attach: null },
    ],
    [
      'not-dumpable',
      { target: { dumpable: false } },
      { read: 'not-dumpable', attach: 'not-dumpable' },
    ],
    [
      'more-capabilities',
      { target: { permittedCapabilities: 1n << 10n } },
      { read: 'more-capabilities', attach: 'more-capabilities' },
    ],
    ['none under Yama 0', { rest: { yamaScope: 0 } }, { read: null, attach: null }],
    [
      'yama-descendants under Yama 1',
      { rest: { yamaScope: 1 } },
      { read: null, attach: 'yama-descendants' },
    ],
    [
      'none under Yama 1 for what trace started',
      { rest: { yamaScope: 1, isDescendant: true } },
      { read: null, attach: null },
    ],
    [
      'none under Yama 1 with the capability',
      { own: capable, rest: { yamaScope: 1 } },
      { read: null, attach: null },
    ],
    [
      'yama-admin under Yama 2, even for what trace started',
      { rest: { yamaScope: 2, isDescendant: true } },
      { read: null, attach: 'yama-admin' },
    ],
    [
      'yama-none under Yama 3, whatever is held',
      { own: capable, rest: { yamaScope: 3 } },
      { read: null, attach: 'yama-none' },
    ],
  ];
  it.each(cases)('is %s', (_, change, expected) => {
    const given = facts(change);
    expect({
      read: forbiddingRule(given, 'read'),
      attach: forbiddingRule(given, 'attach'),
    }).toEqual(expected);
  });

  it('is what this kernel applies to every process of this machine', () => {
    const wrong: unknown[] = [];
    for (const stat of listProcesses()) {
      const { pid } = stat;
      const given = gatherFacts(pid);
      // Kernel threads and ended processes have no memory to open, whoever asks.
      if (given === null || readStatus(pid)?.virtualBytes === null) continue;
      const judged = judgeAccess({ kind: 'process', pid, startTicks: stat.startTicks });
      if (readStat(pid) === null) continue;
      for (const [mode, access] of [
        ['attach', judged.memory],
        ['read', judged.details],
      ] as const) {
        const rule = forbiddingRule(given, mode);
        // The exception a process makes for its debugger (PR_SET_PTRACER) does not show.
        if (rule !== null && rule !== 'yama-descendants' && access.available)
          wrong.push([pid, mode, rule]);
        // A security module may deny more than these rules do; then nothing else may be blamed.
        if (rule === null && !access.available && !access.reason.includes('no known rule'))
          wrong.push([pid, mode, access.reason]);
      }
    }
    expect(wrong).toEqual([]);
  });
});

describe('the message', () => {
  const sayFor = (change: Parameters<typeof facts>[0]) => {
    const given = facts(change);
    const rule = forbiddingRule(given, 'attach');
    const commandLine = ['/usr/bin/node', '/opt/my tools/main.js', 'attach', '20'];
    return {
      cause: causeOf(rule, given),
      commands: remediesFor(rule, given, commandLine).map(({ command }) => command),
    };
  };
  const sudo = `sudo /usr/bin/node '/opt/my tools/main.js' attach 20`;

  it('names both users, and offers sudo with absolute paths', () => {
    const { cause, commands } = sayFor({ target: { uids: root } });
    expect(cause).toBe(
      'it belongs to root (uid 0), trace runs as uid 1001 and CAP_SYS_PTRACE is not held',
    );
    expect(commands).toEqual([sudo]);
  });

  it('under Yama names the setting and its value, and both ways out', () => {
    const { cause, commands } = sayFor({ rest: { yamaScope: 1 } });
    expect(cause).toContain('kernel.yama.ptrace_scope = 1 (only descendants may be traced)');
    expect(commands).toEqual([sudo, 'sudo sysctl kernel.yama.ptrace_scope=0']);
    expect(sayFor({ rest: { yamaScope: 2 } }).commands).toEqual([sudo]);
  });

  it('says that scope 3 needs a reboot, and does not offer sudo as if it helped', () => {
    const { cause, commands } = sayFor({ rest: { yamaScope: 3 } });
    expect(cause).toContain('until the next reboot');
    expect(commands).toEqual(['sudo reboot']);
  });

  it('in a container offers the capability, and to root no sudo', () => {
    const inContainer = sayFor({
      own: { uids: root },
      target: { uids: [5, 5, 5, 5] },
      rest: { inContainer: true },
    });
    expect(inContainer.commands.join('\n')).toMatch(
      /docker run --cap-add=SYS_PTRACE --pid=container:NAME .* trace attach PID/,
    );
    expect(inContainer.commands.join('\n')).toMatch(
      /kubectl debug POD .*--target=CONTAINER --profile=sysadmin -- trace attach PID/,
    );
    expect(inContainer.commands.join('\n')).not.toContain('sudo');
  });

  it('admits it when no known rule explains a denial, and names the security modules', () => {
    const given = facts({ rest: { securityModules: ['capability', 'selinux'] } });
    expect(causeOf(null, given)).toBe(
      'denied though no known rule forbids it (active security modules: selinux)',
    );
  });

  it('suspects a seccomp filter that trace runs under, and in a container says how to do without', () => {
    const given = facts({ rest: { seccomp: 2, inContainer: true } });
    expect(causeOf(null, given)).toContain('trace runs under a seccomp filter');
    const commands = remediesFor(null, given, ['trace']).map(({ command }) => command);
    expect(commands.join('\n')).toContain('--security-opt seccomp=unconfined');
  });

  it('repeats the command with the absolute path of this Node', () => {
    expect(ownCommandLine(20)).toEqual([
      process.execPath,
      expect.stringMatching(/^\//),
      'attach',
      '20',
    ]);
  });

  it('repeats the flags that were typed, but never a credential or a control character', () => {
    const repeated = (...typed: string[]) => ownCommandLine(20, typed).slice(2);
    const plain = ['-v', 'attach', '--match', 'my server', '-d', '1m'];
    expect(repeated(...plain)).toEqual(plain);
    for (const kept of ['http://me:secret@host:4318', 'sk-0123456789abcdef', 'a\u001b[2Jb'])
      expect(repeated('attach', '20', '--otlp-endpoint', kept)).toEqual(['attach', '20']);
    // Another verb's flags are not attach's.
    expect(repeated('doctor', '20', '--json')).toEqual(['attach', '20']);
  });
});

describe('judging a real process', () => {
  it('of our own finds everything readable, or says which rule forbids it', async () => {
    const { pid } = await startShell('echo; read nothing');
    const judged = judgeAccess(findTarget({ pid }).target);
    // A child of this process: a descendant, which Yama 1 allows too.
    const yama = gatherFacts(pid)?.yamaScope ?? 0;
    expect(judged.memory.available).toBe(yama < 2);
    expect(judged.syscall.available).toBe(yama < 2);
    expect(judged).toMatchObject({ details: { available: true }, stats: { available: true } });
    expect(judged.messages.length === 0).toBe(yama < 2);
  });

  it('that is gone says so and offers nothing', async () => {
    const started = await startShell('echo; read nothing');
    const { target } = findTarget({ pid: started.pid });
    await end(started);
    expect(judgeAccess(target)).toMatchObject({
      memory: { available: false, reason: 'the process is gone', remedy: null },
      stats: { available: false },
      messages: [],
    });
  });

  it('that is a zombie is gone: no kernel lacks what it has no more', async () => {
    const python = interpreters()[0]?.path ?? 'python3';
    const zombie = `import os, time
child = os.fork()
if child == 0:
    os._exit(0)
os.waitid(os.P_PID, child, os.WEXITED | os.WNOWAIT)
print(child, flush=True)
time.sleep(60)`;
    const { said } = await start(python, ['-c', zombie]);
    const { memory } = judgeAccess({ kind: 'process', pid: Number(said), startTicks: 0 });
    expect(memory).toMatchObject({ available: false, reason: 'the process is gone' });
  });

  it('that somebody debugs names who: what stops there is not the program', async () => {
    const python = interpreters()[0]?.path ?? 'python3';
    // PTRACE_TRACEME, then a stop that the parent is told of but never continues.
    const traced = `import ctypes, os, signal, time
child = os.fork()
if child == 0:
    ctypes.CDLL(None).ptrace(0, 0, 0, 0)
    os.kill(os.getpid(), signal.SIGSTOP)
    os._exit(0)
os.waitpid(child, os.WUNTRACED)
print(child, flush=True)
time.sleep(60)`;
    const { pid: tracer, said } = await start(python, ['-c', traced]);
    const { target, tracer: found } = findTarget({ pid: said });
    expect(found).toBe(tracer);
    expect(judgeAccess(target).messages.join('\n')).toContain(
      `already traced by ${tracer} (python`,
    );
  });

  it('that is stopped says that nothing happens in it', async () => {
    const { pid, child } = await startShell('echo; read nothing');
    const { target } = findTarget({ pid });
    child.kill('SIGSTOP');
    await until(() => readStat(pid)?.state === 'T');
    expect(judgeAccess(target).messages.join('\n')).toContain(`pid ${pid} is stopped`);
    child.kill('SIGCONT');
  });

  it('knows how /proc is mounted here', () => {
    const mounted = /^\S+ \/proc proc \S*hidepid=(\w+)/m.exec(
      readFileSync('/proc/self/mounts', 'utf8'),
    )?.[1];
    expect(hidePid()).toBe(mounted === '0' || mounted === 'off' ? null : (mounted ?? null));
  });
});
