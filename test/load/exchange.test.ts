import { expect, test } from 'vitest';
import { NotedExchange } from './wire/exchange.ts';

/** Everything that the wire writes. */
function fieldsOf(exchange: NotedExchange): Record<string, unknown> {
  const { outputs: _, ends: __, ended: ___, ...fields } = exchange;
  return fields;
}

test('clearing an exchange leaves nothing of the request before, whatever the wire wrote', () => {
  const fresh = fieldsOf(new NotedExchange());
  const used = new NotedExchange();
  const written = Object.keys(fresh);
  expect(written).toContain('serverDate');
  Object.assign(used, Object.fromEntries(written.map((name) => [name, 'of the last'])));
  used.clear();
  expect(fieldsOf(used)).toEqual(fresh);
});
