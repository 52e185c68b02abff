import { once } from 'node:events';
import { request } from 'node:http';
import { setTimeout as sleep } from 'node:timers/promises';
import { parseArgs } from 'node:util';

/*
 * `--clients` that each stream one completion after another from an OpenAI-compatible server on this machine, with `--pause` seconds between
 * them, for `--seconds`. The last line
 * of standard output says how many streams and tokens there were, and how many streams failed.
 */

const { values: flags } = parseArgs({
  options: {
    port: { type: 'string' },
    clients: { type: 'string', default: '4' },
    tokens: { type: 'string', default: '64' },
    seconds: { type: 'string', default: '10' },
    pause: { type: 'string', default: '0' },
  },
});

const FAILURES_ALLOWED = 20;
const end = performance.now() + Number(flags.seconds) * 1e3;
const tally = { streams: 0, tokens: 0, failed: 0 };

/** A connection for each: llama-server promises to keep one alive after a streamed answer and closes it. */
async function stream(number) {
  const body = JSON.stringify({
    model: 'tiny',
    stream: true,
    max_tokens: Number(flags.tokens),
    messages: [{ role: 'user', content: `question ${number}` }],
  });
  const call = request({
    host: '127.0.0.1',
    port: Number(flags.port),
    path: '/v1/chat/completions',
    method: 'POST',
    headers: { 'content-type': 'application/json', 'content-length': Buffer.byteLength(body) },
    agent: false,
  });
  call.end(body);
  const [response] = await once(call, 'response');
  if (response.statusCode !== 200) throw new Error(`status ${response.statusCode}`);
  let rest = '';
  for await (const chunk of response.setEncoding('utf8')) {
    const events = (rest + chunk).split('\n\n');
    rest = events.pop() ?? '';
    for (const event of events) if (event.includes('"content":"')) tally.tokens += 1;
  }
  tally.streams += 1;
}

async function client(number) {
  for (let i = 0; performance.now() < end && tally.failed < FAILURES_ALLOWED; i++) {
    await stream(`${number}.${i}`).catch(() => (tally.failed += 1));
    if (flags.pause !== '0') await sleep(Number(flags.pause) * 1e3);
  }
}

process.stdout.write(`READY ${process.pid} 0\n`);
await Promise.all(Array.from({ length: Number(flags.clients) }, (_, number) => client(number)));
process.stdout.write(`${JSON.stringify(tally)}\n`);
