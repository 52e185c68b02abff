import { describe, expect, it } from 'vitest';
import type { LoadErrorClass } from '../../../src/core/load-types.ts';
import { type Phase, socketFailure } from '../../../src/load/wire/failure.ts';

function failed(code: string, phase: Phase): LoadErrorClass {
  const error = Object.assign(new Error(`connect ${code} 127.0.0.1:8000`), { code });
  return socketFailure(error, phase, null).class;
}

describe('the class of what a socket met', () => {
  it.each([
    ['EMFILE', 'connecting', 'client'],
    ['ENFILE', 'connecting', 'client'],
    ['ENOBUFS', 'waiting', 'client'],
    ['ENOMEM', 'answering', 'client'],
    ['ECONNREFUSED', 'connecting', 'refused'],
    ['EHOSTUNREACH', 'connecting', 'unreachable'],
    ['ECONNRESET', 'connecting', 'reset'],
    ['ECONNRESET', 'handshake', 'reset'],
    ['EPIPE', 'handshake', 'reset'],
    ['ETIMEDOUT', 'handshake', 'timeout.connect'],
    ['ERR_SSL_WRONG_VERSION_NUMBER', 'handshake', 'tls'],
    ['ECONNRESET', 'waiting', 'reset'],
    ['ECONNRESET', 'answering', 'cut'],
  ] as const)('%s while %s is %s', (code, phase, expected) => {
    expect(failed(code, phase)).toBe(expected);
  });
});
