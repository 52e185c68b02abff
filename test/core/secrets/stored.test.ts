import { expect, it } from 'vitest';
import { toTargetInfo } from '../../../src/core/otlp-records.ts';
import { maskAttributes } from '../../../src/core/secrets/exchanges.ts';

it('a title of a recording of an older trace is shown without a credential', () => {
  const title = 'python serve.py --header=Authorization:Bearer S3cretValue9 --port 8000';
  expect(toTargetInfo({ pid: 1, title })?.title).toBe(
    'python serve.py --header=Authorization:Bearer *** --port 8000',
  );
});

it('attributes are looked at with their names', () => {
  expect(
    maskAttributes({ 'api.token': 'S3cretValue9', 'token.count': '9', url: 'http://u:p@h', n: 1 }),
  ).toEqual({ 'api.token': '***', 'token.count': '9', url: 'http://u:***@h', n: 1 });
});
