import { setTimeout as wait } from 'node:timers/promises';
import { describe, expect, it, onTestFinished } from 'vitest';
import { ExitListener } from '../../src/platform/exit-listener.ts';
import { judge } from '../../src/platform/kernel-log.ts';
import { startShell } from './processes.ts';

/** The first pid namespace, and root, are what the kernel asks for; elsewhere the listener hears nothing and says nothing. */
const HEARS = process.getuid?.() === 0;

describe('what is heard of exits', () => {
  it.runIf(HEARS)('is the status that a parent took at once, by code and by signal', async () => {
    const listener = new ExitListener();
    onTestFinished(() => listener.close());
    listener.listen();
    await wait(500);
    const { pid } = await startShell(
      `sh -c 'sleep 0.2; exit 3' & a=$!; sh -c 'sleep 0.2; kill -9 $$' & echo up; wait`,
    );
    await wait(700);
    const statuses = Array.from({ length: 40 }, (_, i) => listener.statusOf(pid + i));
    expect(statuses).toContain(3 << 8);
    expect(statuses).toContain(9);
    expect(listener.statusOf(process.pid)).toBeNull();
  });

  it('is nothing before it listens', () => {
    const listener = new ExitListener();
    expect(listener.statusOf(1)).toBeNull();
    listener.close();
  });
});

describe("the kernel's log", () => {
  it.each([
    [
      'Memory cgroup out of memory: Killed process 4711 (python3) total-vm:1kB, anon-rss:2kB',
      'cgroup-out-of-memory',
    ],
    ['Out of memory: Killed process 4711 (python3) total-vm:10kB', 'out-of-memory'],
    ['python3[4711]: segfault at 0 ip 00007f sp 00007f error 4 in libc.so.6[7f+1]', 'fault'],
    ['traps: python3[4711] trap invalid opcode ip:5 sp:7 error:0 in python3.11', 'fault'],
    ['traps: python3[4711] general protection fault ip:5 sp:7 error:0', 'fault'],
  ])('says of a process: %s', (text, cause) => {
    expect(judge(text, 4711, 'python3')?.cause).toBe(cause);
    expect(judge(text, 4712, 'python3')).toBeNull();
    // The same pid in another pid namespace is another process.
    expect(judge(text, 4711, 'nginx')).toBeNull();
  });

  it.each([
    'python3[4711]: started',
    'usb 1-1: new device 4711 (python3)',
    'Killed process 4711 (python3)',
  ])('says nothing by: %s', (text) => {
    expect(judge(text, 4711, 'python3')).toBeNull();
  });
});
