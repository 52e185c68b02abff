import { expect, it } from 'vitest';
import { partialSuccess } from '../../src/otel/partial-success.ts';
import { random } from '../recording/observations.ts';
import { encodeResponse } from './protobuf.ts';

const answer = (body: Buffer | string, contentType = 'application/x-protobuf') => ({
  status: 200,
  retryAfter: null,
  contentType,
  body: Buffer.from(body),
});

it.each(['traces', 'metrics', 'logs'] as const)('a protobuf answer about %s is read', (signal) => {
  const message = 'x'.repeat(300);
  expect(partialSuccess(answer(encodeResponse(signal, 70_000, message)))).toEqual({
    rejected: 70_000,
    message,
  });
});

it('a JSON answer is read, with its number as text or number', () => {
  const json = (partial: unknown) =>
    partialSuccess(answer(JSON.stringify({ partialSuccess: partial }), 'application/json'));
  expect(json({ rejectedSpans: '3', errorMessage: 'm' })).toEqual({ rejected: 3, message: 'm' });
  expect(json({ rejectedDataPoints: 4 })).toEqual({ rejected: 4, message: '' });
  expect(json(7)).toEqual({ rejected: 0, message: '' });
});

it('anything else says nothing, and does not throw', () => {
  const next = random(1);
  for (const body of ['', '{', 'null', '<html>', '\u00ff'.repeat(40)])
    for (const type of ['application/json', 'text/html'])
      expect(partialSuccess(answer(body, type)).message).toBe('');
  for (let i = 0; i < 2000; i++) {
    const bytes = Buffer.from(Array.from({ length: i % 40 }, () => Math.floor(next() * 256)));
    expect(() => partialSuccess(answer(bytes))).not.toThrow();
  }
});
