import { describe, expect, it } from 'vitest';
import {
  descriptorLimit,
  lackOfDescriptors,
  openDescriptors,
  requireDescriptors,
} from '../../src/platform/descriptor-limit.ts';

describe('the limit of open files', () => {
  it('is read as the kernel writes it', () => {
    const line = 'Max open files            1024                 524288               files     \n';
    expect(descriptorLimit(`Limit   Soft Limit\n${line}`)).toBe(1024);
    expect(descriptorLimit(line.replace('1024', 'unlimited'))).toBeNull();
    expect(descriptorLimit(null)).toBeNull();
  });

  it('of this process is above what it has open', () => {
    expect(openDescriptors()).toBeGreaterThan(2);
    expect(descriptorLimit() ?? Number.POSITIVE_INFINITY).toBeGreaterThan(openDescriptors());
  });

  it('that is too low for trace is said before anything is tried', () => {
    expect(() => requireDescriptors(64)).toThrow(/^trace needs 96 open files, and may have 64$/);
    for (const limit of [96, 1024, null]) expect(() => requireDescriptors(limit)).not.toThrow();
  });
});

describe('an error', () => {
  const full = Object.assign(new Error('too many open files, open x'), { code: 'EMFILE' });

  it.each([
    ['of the system', full],
    ['that another one was caused by', new Error('cannot load x', { cause: full })],
    ['of a thread', new Error('Worker initialization failure: EMFILE')],
    ['of the whole machine', Object.assign(new Error('file table'), { code: 'ENFILE' })],
  ])('%s that comes of too few open files is what a user can mend', (_, error) => {
    const said = lackOfDescriptors(error);
    expect(said).toMatchObject({ code: 'ERR_TOO_FEW_DESCRIPTORS', exitCode: 2 });
    expect(said?.message).toMatch(/^no further file could be opened/);
    expect(said?.remedy).toContain('ulimit -n');
  });

  it.each([
    [new Error('EMFILES')],
    [new Error('x', { cause: new Error('y') })],
    ['EMFILE'],
    [null],
  ])('%j is what it is', (error) => {
    expect(lackOfDescriptors(error)).toBeNull();
  });
});
