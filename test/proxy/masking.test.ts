import { expect, it } from 'vitest';
import { KeptBody } from '../../src/proxy/kept-body.ts';
import { maskedHeaders, maskedTarget, maskedText, secretsIn } from '../../src/proxy/masking.ts';

it('credentials in headers are masked by name and by form, others stay', () => {
  const headers = [
    ['Authorization', 'Basic dXNlcjpwYXNz'],
    ['x-api-key', 'abc'],
    ['Set-Cookie', 'sid=1'],
    ['X-Trace', 'sk-abcdefghij and more'],
    ['Content-Type', 'application/json'],
  ] as const;
  expect(maskedHeaders(headers)).toEqual([
    ['Authorization', '***'],
    ['x-api-key', '***'],
    ['Set-Cookie', '***'],
    ['X-Trace', '*** and more'],
    ['Content-Type', 'application/json'],
  ]);
});

it('a credential of a header is found again where it is echoed', () => {
  const secrets = secretsIn([['Authorization', 'Bearer plainvalue']]);
  expect(maskedText('you sent plainvalue twice: plainvalue', secrets)).toBe(
    'you sent *** twice: ***',
  );
});

it('members of JSON with a telling name are masked, tokens that are counted are not', () => {
  const text = '{"password": "a\\"b", "api_key":"x","prompt_tokens":12,"max_tokens":5,"p":"hi"}';
  expect(maskedText(text, [])).toBe(
    '{"password": "***", "api_key":"***","prompt_tokens":12,"max_tokens":5,"p":"hi"}',
  );
});

it('of a query names stay, and values where they are asked for and no credentials', () => {
  const target = '/a?page=2&api_key=abc&flag';
  expect(maskedTarget(target, { values: false })).toBe('/a?page&api_key&flag');
  expect(maskedTarget(target, { values: true })).toBe('/a?page=2&api_key=***&flag');
});

it('a body that is cut within a character is still text', () => {
  const kept = new KeptBody(5);
  kept.add(Buffer.from('aä'));
  kept.add(Buffer.from('aäö'));
  expect(kept).toMatchObject({ size: 8, isCut: true });
  expect(kept.content()).toEqual({ body: 'aäa', encoding: 'utf8' });
  const whole = new KeptBody(100);
  whole.add(Buffer.from([0xff, 0x00]));
  expect(whole.content()).toEqual({ body: '/wA=', encoding: 'base64' });
});
