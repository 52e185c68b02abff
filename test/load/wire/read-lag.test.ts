import { expect, test } from 'vitest';
import { monotonicNow } from '../../../src/core/clock.ts';
import { chatStream, chunk, sse, SSE_HEAD, streamed } from './answers.ts';
import { ask, NotedExchange } from './exchange.ts';
import { wireTests } from './wire-tests.ts';

const { serve, wireTo } = wireTests();

function spin(seconds: number): void {
  const until = monotonicNow() + seconds;
  while (monotonicNow() < until);
}

test('counts reads, and is empty after it was drained', async () => {
  const server = await serve(() => [streamed(chatStream('a'))]);
  const wire = wireTo(server);
  expect(wire.readLag.drain().count).toBe(0);
  // The first read of a window has nothing before it to compare with.
  for (let i = 0; i < 5; i++) await ask(wire);
  expect(wire.readLag.drain().count).toBeGreaterThan(0);
  expect(wire.readLag.drain().count).toBe(0);
});

test('is as long as the client kept its own loop from reading', async () => {
  const event = sse(chunk({ content: 'a' }));
  const bytes = `${event.length.toString(16)}\r\n${event}\r\n`;
  const steps = Array.from({ length: 60 }, () => [bytes, 3]).flat();
  const server = await serve(() => [SSE_HEAD, ...steps]);
  const wire = wireTo(server);
  const exchanges = Array.from({ length: 4 }, () => new NotedExchange());
  let outputs = 0;
  // Each output holds up the next one, which came meanwhile.
  for (const exchange of exchanges) {
    exchange.onOutput = () => {
      outputs++;
      spin(0.004);
    };
    wire.send(wire.frame(Buffer.from('{}'), null), exchange);
  }
  await expect.poll(() => outputs, { timeout: 30_000 }).toBeGreaterThan(100);
  const lag = wire.readLag.drain();
  expect(lag.count).toBeGreaterThan(10);
  expect(lag.max).toBeGreaterThan(0.0035);
});
