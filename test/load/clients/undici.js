import { writeFileSync } from 'node:fs';
import { performance } from 'node:perf_hooks';
import process from 'node:process';
import { parseArgs } from 'node:util';
import { Pool } from 'undici';

/*
 * A load client of the plain kind, as fast as undici allows: closed loop, one connection a stream, undici's dispatch (no streams), lines found
 * in the bytes, JSON.parse for each event. Times in seconds. Prints one line of JSON; the requests go to --log, as JSON.
 */

const { values } = parseArgs({
  options: {
    url: { type: 'string' },
    concurrency: { type: 'string' },
    seconds: { type: 'string' },
    /** Requests that began within the first so many seconds are not logged; the streams begin spread over half of it. */
    warmup: { type: 'string', default: '1' },
    tokens: { type: 'string', default: '64' },
    log: { type: 'string' },
  },
});
const concurrency = Number(values.concurrency);
const warmupMs = Number(values.warmup) * 1e3;
const words = 'word '.repeat(64);
const body = JSON.stringify({
  model: 'truth',
  stream: true,
  stream_options: { include_usage: true },
  max_tokens: Number(values.tokens),
  messages: [{ role: 'user', content: words }],
});
const pool = new Pool(values.url ?? '', {
  connections: concurrency,
  bodyTimeout: 0,
  headersTimeout: 0,
});
const began = performance.now();
const measuredFrom = began + warmupMs;
const endAt = measuredFrom + Number(values.seconds) * 1e3;
const rows = [];
/** Between outputs, of all the requests in `rows`. */
const gaps = [];
let sent = 0;
let failed = 0;
let tokens = 0;

/** Reads `data:` lines out of chunks and calls back for each JSON in them. */
class Lines {
  rest = '';
  /** @param {Buffer} chunk @param {(data: string) => void} onData */
  feed(chunk, onData) {
    const text = this.rest + chunk.latin1Slice();
    let from = 0;
    for (let end = text.indexOf('\n'); end !== -1; end = text.indexOf('\n', from)) {
      if (text.startsWith('data: ', from)) onData(text.slice(from + 6, end));
      from = end + 1;
    }
    this.rest = text.slice(from);
  }
}

function stream(done) {
  const lines = new Lines();
  const number = ++sent;
  const spanId = number.toString(16).padStart(16, '0');
  const startedAt = performance.now();
  let firstAt = 0;
  let lastAt = 0;
  let isComplete = false;
  let status = 0;
  const ownGaps = [];
  const end = (isOk) => {
    if (!isOk) failed++;
    else if (startedAt >= measuredFrom) {
      rows.push({ spanId, ttft: (firstAt - startedAt) / 1e3 });
      gaps.push(...ownGaps);
    }
    done();
  };
  pool.dispatch(
    {
      path: '/v1/chat/completions',
      method: 'POST',
      headers: {
        'content-type': 'application/json',
        traceparent: `00-${'1'.repeat(32)}-${spanId}-01`,
      },
      body,
    },
    {
      onRequestStart() {},
      onResponseStart(_controller, code) {
        status = code;
      },
      onResponseData(_controller, chunk) {
        const now = performance.now();
        lines.feed(chunk, (data) => {
          if (data === '[DONE]') {
            isComplete = true;
            return;
          }
          if (!JSON.parse(data).choices[0]?.delta?.content) return;
          if (firstAt === 0) firstAt = now;
          else ownGaps.push((now - lastAt) / 1e3);
          lastAt = now;
          tokens++;
        });
      },
      onResponseEnd: () => end(status === 200 && isComplete && firstAt !== 0),
      onResponseError: () => end(false),
    },
  );
}

await new Promise((resolve) => {
  let running = concurrency;
  const slot = () => {
    if (performance.now() < endAt) stream(slot);
    else if (--running === 0) resolve();
  };
  for (let i = 0; i < concurrency; i++) setTimeout(slot, (warmupMs / 2) * (i / concurrency));
});
await pool.destroy();
const wall = (performance.now() - began) / 1e3;

/** Type 7, as everywhere in this repository. */
function quantile(sorted, q) {
  const at = (sorted.length - 1) * q;
  const low = Math.floor(at);
  const high = Math.min(low + 1, sorted.length - 1);
  return sorted[low] + (sorted[high] - sorted[low]) * (at - low);
}

function quantiles(values) {
  if (values.length === 0) return null;
  const sorted = Float64Array.from(values).sort();
  return { p50: quantile(sorted, 0.5), p99: quantile(sorted, 0.99) };
}

const ttft = quantiles(rows.map((row) => row.ttft));
if (values.log !== undefined) writeFileSync(values.log, JSON.stringify(rows));
process.stdout.write(
  `${JSON.stringify({ sent, failed, tokens, wall, ttft, itl: quantiles(gaps) })}\n`,
);
