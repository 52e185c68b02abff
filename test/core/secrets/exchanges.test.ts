import { expect, it } from 'vitest';
import {
  maskEchoes,
  maskHeaders,
  maskTarget,
  secretsIn,
} from '../../../src/core/secrets/exchanges.ts';

it('credentials in headers are masked by name and by form, others stay', () => {
  const headers = [
    ['Authorization', 'Basic dXNlcjpwYXNz'],
    ['x-api-key', 'abc'],
    ['Set-Cookie', 'sid=1'],
    ['X-Trace', 'sk-abcdefghij and more'],
    ['Content-Type', 'application/json'],
  ] as const;
  expect(maskHeaders(headers)).toEqual([
    ['Authorization', '***'],
    ['x-api-key', '***'],
    ['Set-Cookie', '***'],
    ['X-Trace', '*** and more'],
    ['Content-Type', 'application/json'],
  ]);
});

it('a credential of a header is found again where it is echoed', () => {
  const secrets = secretsIn([['Authorization', 'Bearer plainvalue']]);
  expect(maskEchoes('you sent plainvalue twice: plainvalue', secrets)).toBe(
    'you sent *** twice: ***',
  );
});

it('members of JSON with a telling name are masked, tokens that are counted are not', () => {
  const text = '{"password": "a\\"b", "api_key":"x","prompt_tokens":12,"max_tokens":5,"p":"hi"}';
  expect(maskEchoes(text, [])).toBe(
    '{"password": "***", "api_key":"***","prompt_tokens":12,"max_tokens":5,"p":"hi"}',
  );
});

it('of a query names stay, and values where they are asked for and no credentials', () => {
  const target = '/a?page=2&api_key=abc&flag';
  expect(maskTarget(target, { values: false })).toBe('/a?page&api_key&flag');
  expect(maskTarget(target, { values: true })).toBe('/a?page=2&api_key=***&flag');
});
