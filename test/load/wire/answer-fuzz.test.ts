import { expect, test } from 'vitest';
import type { LoadApi } from '../../../src/core/load-types.ts';
import { seededRandom } from '../../../src/core/random.ts';
import { Answer } from '../../../src/load/wire/answer.ts';
import { parseHead } from '../../../src/load/wire/response-head.ts';
import { NotedExchange } from './exchange.ts';
import { readPlainly } from './plain-reader.ts';
import { corrupted, pieces, randomStream } from './random-streams.ts';

/** Counts what was recognized by its shape alone. */
class CountingAnswer extends Answer {
  recognized = 0;

  override recognize(buffer: Buffer, start: number, end: number): number {
    const next = super.recognize(buffer, start, end);
    if (next >= 0) this.recognized++;
    return next;
  }
}

/** Parses every event. */
class ParsingAnswer extends Answer {
  override recognize(): number {
    return -1;
  }
}

const head = parseHead('HTTP/1.1 200 OK\r\nContent-Type: text/event-stream');

/** As the wire reads: into one buffer, over what was there. */
const shared = Buffer.alloc(64 * 1024);

/** What an answer makes of the bytes, read in these pieces; the time of a read is its number. */
function read(answer: Answer, parts: readonly Buffer[]): NotedExchange {
  if (typeof head === 'string') throw new Error(head);
  const exchange = new NotedExchange();
  exchange.status = 200;
  answer.begin(exchange);
  answer.head(head);
  for (const [i, part] of parts.entries()) {
    part.copy(shared, 0);
    answer.at = i;
    answer.body(shared, 0, part.length);
  }
  answer.complete();
  return exchange;
}

const facts = (exchange: NotedExchange) => ({
  outputs: exchange.outputs,
  text: exchange.text,
  error: exchange.error,
  tokens: [exchange.inputTokens, exchange.outputTokens, exchange.cachedTokens],
  finishReason: exchange.finishReason,
  responseId: exchange.responseId,
});

const CASES = 1500;

test.each([
  ['whole', false],
  ['corrupted', true],
])(
  'recognizing events by their shape is parsing them, and both are plain reading: %s streams',
  (_, isCorrupt) => {
    let recognized = 0;
    const classes = new Map<string, number>();
    const answers = new Map<LoadApi, { fast: CountingAnswer; slow: ParsingAnswer }>();
    for (let seed = 1; seed <= CASES; seed++) {
      const random = seededRandom(seed + (isCorrupt ? 1e6 : 0));
      const { api, bytes: whole } = randomStream(random);
      const bytes = isCorrupt ? corrupted(random, whole) : whole;
      const options = { api, streaming: true, keepText: random() < 0.7 };
      // The same answer reads one stream after the other, as on a kept connection.
      const kept = options.keepText ? answers.get(api) : undefined;
      const pair = kept ?? { fast: new CountingAnswer(options), slow: new ParsingAnswer(options) };
      if (options.keepText) answers.set(api, pair);
      const parts = pieces(random, bytes);
      const before = pair.fast.recognized;
      const fast = read(pair.fast, parts);
      const slow = read(pair.slow, parts);
      expect(facts(fast), `seed ${seed}`).toEqual(facts(slow));
      const plain = readPlainly(api, bytes);
      expect(
        {
          outputs: fast.outputs.length,
          text: options.keepText ? fast.text : plain.text,
          error: fast.error?.class ?? null,
          inputTokens: fast.inputTokens,
          outputTokens: fast.outputTokens,
          finishReason: fast.finishReason,
        },
        `seed ${seed}: ${JSON.stringify(bytes.toString('latin1'))}`,
      ).toEqual(plain);
      recognized += pair.fast.recognized - before;
      const kind = fast.error?.class ?? 'ok';
      classes.set(kind, (classes.get(kind) ?? 0) + 1);
    }
    // Else this compares parsing with itself.
    expect(recognized).toBeGreaterThan(CASES);
    for (const kind of ['ok', 'cut', 'error_event', 'empty']) {
      expect(classes.get(kind), kind).toBeGreaterThan(CASES / 100);
    }
    if (isCorrupt) expect(classes.get('malformed')).toBeGreaterThan(CASES / 100);
  },
);
