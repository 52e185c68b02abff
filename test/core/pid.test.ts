import { describe, expect, it } from 'vitest';
import { parsePid } from '../../src/core/pid.ts';

describe('parsePid', () => {
  it('takes what the kernel can give', () => {
    expect([parsePid('1'), parsePid('4194304'), parsePid(4312)]).toEqual([1, 4_194_304, 4312]);
  });

  it.each(['-1', '12a', '', '1.5', '0x10', ' 7'])('refuses %j', (text) => {
    expect(() => parsePid(text)).toThrow(`expected a process id, got '${text}'`);
  });

  it.each(['0', '4194305', '99999999'])('says what pids can be to %j', (text) => {
    expect(() => parsePid(text)).toThrow(`expected a process id from 1 to 4194304, got '${text}'`);
  });
});
