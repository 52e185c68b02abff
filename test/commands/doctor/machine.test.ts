import { describe, expect, it } from 'vitest';
import { kernelChecks } from '../../../src/commands/doctor/machine.ts';
import { isReadableNode, isReadablePython } from '../../../src/commands/doctor/programs.ts';
import { kernelFeatures, tracingMount } from '../../../src/platform/kernel-features.ts';

describe('the kernel', () => {
  it('is ok where everything is there', () => {
    const all = kernelChecks({
      release: '6.12.1',
      descriptorCount: true,
      schedstat: true,
      syscall: true,
      tracing: '/sys/kernel/tracing',
    });
    expect(all.map(({ status }) => status)).toEqual(['ok', 'ok', 'ok', 'ok', 'ok']);
  });

  it('is said to be old, or built without something, with what would change it', () => {
    const none = kernelChecks({
      release: '5.10.0',
      descriptorCount: false,
      schedstat: false,
      syscall: false,
      tracing: null,
    });
    expect(none.map(({ name, status }) => `${name} ${status}`)).toEqual([
      'kernel ok',
      'descriptor-count limited',
      'schedstat missing',
      'syscall-file missing',
      'tracing limited',
    ]);
    for (const { remedy } of none.slice(1)) expect(remedy).not.toBeNull();
  });

  it('counts descriptors in the size of fd from 6.2 on, as this very kernel shows', () => {
    const { release, descriptorCount } = kernelFeatures();
    const [major = 0, minor = 0] = release.split('.').map(Number);
    expect(descriptorCount).toBe(major > 6 || (major === 6 && minor >= 2));
  });

  it('has its trace file system found wherever it is mounted', () => {
    const mounts = 'proc /proc proc rw 0 0\nnodev /mnt/t tracefs rw 0 0\n';
    expect(tracingMount(mounts)).toBe('/mnt/t');
    expect(tracingMount('tracefs /proc proc rw 0 0\n')).toBeNull();
  });
});

describe('interpreters', () => {
  it('are supported from CPython 3.8 to 3.14 in released default builds', () => {
    const supported = ['3.8.20', '3.11.2', '3.13.0rc2', '3.14.3'];
    const others = ['2.7.18', '3.7.17', '3.15.0', '3.13.0a1', '3.13.0b4', 'PyPy'];
    expect(supported.filter((version) => !isReadablePython(version))).toEqual([]);
    expect(others.filter(isReadablePython)).toEqual([]);
  });

  it('are supported from Node 20 on', () => {
    expect(['20.18.1', '24.0.0'].every(isReadableNode)).toBe(true);
    expect(['18.20.4', '8.17.0'].some(isReadableNode)).toBe(false);
  });
});
