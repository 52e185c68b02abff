import { Agent, request } from 'node:http';
import { setTimeout as wait } from 'node:timers/promises';
import { parseArgs } from 'node:util';

/*
 * A bounded number of streaming chat completions to the demo server on this machine, every third with a long prompt, and what
 * its users notice: the time between two tokens.
 */

const { values: flags } = parseArgs({
  options: {
    port: { type: 'string' },
    requests: { type: 'string', default: '45' },
    'interval-ms': { type: 'string', default: '250' },
  },
});

const LONG_PROMPT =
  'Please summarise the following paragraph about event loops and their callbacks. '.repeat(20);
const agent = new Agent({ keepAlive: true, maxSockets: 16 });
const gaps = [];
let failed = 0;

function stream(prompt) {
  return new Promise((resolve) => {
    const body = JSON.stringify({
      model: 'demo',
      stream: true,
      messages: [{ role: 'user', content: prompt }],
    });
    const fail = () => {
      failed += 1;
      resolve();
    };
    const call = request(
      {
        host: '127.0.0.1',
        port: Number(flags.port),
        method: 'POST',
        path: '/v1/chat/completions',
        headers: { 'content-type': 'application/json', 'content-length': Buffer.byteLength(body) },
        agent,
      },
      (answer) => {
        let last;
        answer.on('data', () => {
          const now = performance.now();
          if (last !== undefined) gaps.push(now - last);
          last = now;
        });
        answer.on('end', resolve).on('error', fail);
      },
    );
    call.on('error', fail);
    call.end(body);
  });
}

const streams = [];
for (let number = 0; number < Number(flags.requests) && failed < 5; number++) {
  streams.push(stream(number % 3 === 2 ? LONG_PROMPT : 'Why did the stream stop?'));
  await wait(Number(flags['interval-ms']));
}
await Promise.all(streams);
agent.destroy();

gaps.sort((a, b) => a - b);
const at = (q) =>
  `${(gaps[Math.min(gaps.length - 1, Math.floor(gaps.length * q))] ?? NaN).toFixed(0)} ms`;
process.stdout.write(
  `${streams.length} streams, ${failed} failed; between two tokens: median ${at(0.5)}, p99 ${at(0.99)}, worst ${at(1)} (of ${gaps.length})\n`,
);
