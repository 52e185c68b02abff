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
    // Both children are told of until one run of them has been heard: the listener may still be subscribing at the first.
    const heard = async (): Promise<readonly (number | null)[]> => {
      const { pid } = await startShell(
        `sh -c 'exit 3' & sh -c 'kill -9 $$' & wait; echo up; sleep 1`,
      );
      // Real time: what the kernel sends is on its way; asked again until it is there.
      await wait(50);
      return Array.from({ length: 40 }, (_, i) => listener.statusOf(pid + i));
    };
    await expect
      .poll(heard, { timeout: 30_000 })
      .toEqual(expect.arrayContaining([3 << 8, 9]) as unknown);
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
