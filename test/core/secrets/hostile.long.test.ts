import { describe, expect, it } from 'vitest';
import { maskArguments, maskText } from '../../../src/core/secrets/mask.ts';
import { forms } from './corpus.ts';

/** Beginnings of every form that is looked for, and what ends none of them. */
const UNITS = [
  ' ',
  '\t',
  '\n',
  'a',
  'a ',
  'a:',
  'a=',
  '=',
  ':',
  '-',
  '--',
  '_',
  '.',
  '/',
  '\\',
  '"',
  "'",
  '`',
  '\\"',
  '\\\\"',
  '"\\',
  '%',
  '%3A',
  '%3A%2F%2Fa%3A',
  '%22',
  '&quot;',
  '://',
  'a://',
  'a://b:',
  'a://@',
  'postgres://a:/',
  '@',
  'a@b:',
  '[',
  '{',
  '(',
  ',',
  ';',
  ';a',
  '&a',
  ',a,',
  'password',
  'password ',
  'password=',
  'password:',
  'password="',
  "password='",
  'password=\\"',
  'password=,a',
  '"password":',
  '"password: ',
  '--password ',
  '--password "',
  '--password\n- ',
  'key=/a/',
  'key=a',
  'key="',
  'key=\'key="',
  'key: key ',
  'name=password value=',
  'Authorization: ',
  'Authorization: Digest a=',
  'Authorization: Digest a="',
  'Cookie: a; ',
  'Bearer ',
  'Basic ',
  'sk-',
  'sk-ant-',
  'hf_',
  'hf_a',
  'eyJ',
  'eyJa',
  'eyJ-',
  'eyJaaaaaaaa.',
  'SG.',
  'xoxb-',
  'pypi-',
  'IDENTIFIED BY ',
  "IDENTIFIED BY '",
  'login a password ',
  'api key provided ',
  '1:',
  '1234567890:',
  'curl -u ',
  'curl -b a ',
  "mysql -p'",
  '-----BEGIN PRIVATE KEY-----',
  '-----BEGIN PRIVATE KEY-----"',
  '-----BEGIN ',
  '-----END ',
  '$(',
  '${{',
  '\r\n',
  '\u00a0',
  '\u202e',
  '😀',
];

describe('hostile text', () => {
  /** Seconds of CPU, since others run beside this. */
  const timeOf = (text: string): number => {
    const from = process.cpuUsage().user;
    maskText(text);
    maskArguments(['curl', text, `--password=${text}`, `X-Api-Key: ${text}`]);
    return process.cpuUsage(undefined).user - from;
  };

  it.each(UNITS.map((unit) => [JSON.stringify(unit), unit] as const))(
    '%s, a megabyte of it, takes time in proportion',
    (_, unit) => {
      timeOf('warm up --password=x\n'.repeat(1000));
      const small = timeOf(unit.repeat(Math.ceil(2 ** 16 / unit.length)));
      const large = timeOf(unit.repeat(Math.ceil(2 ** 20 / unit.length)));
      // 16 times the text: linear is 16, quadratic 256. What is over in a moment is neither.
      expect(large).toBeLessThan(Math.max(3e6, small * 40));
    },
  );

  it('made of all forms takes time in proportion', () => {
    const all = forms()
      .map(({ input }) => (typeof input === 'string' ? input : input.join(' ')))
      .join('\n');
    const small = timeOf(all);
    const large = timeOf(all.repeat(16));
    expect(large).toBeLessThan(Math.max(3e6, small * 40));
  });
});
