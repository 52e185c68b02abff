import http from 'k6/http';

/* k6 has no SSE in its core: its waiting time is to the first byte, and the body is thrown away. Settings come from the environment. */

const { URL, TOKENS, RATE, CONCURRENCY, SECONDS } = __ENV;
const body = JSON.stringify({
  model: 'truth',
  stream: true,
  stream_options: { include_usage: true },
  max_tokens: Number(TOKENS),
  messages: [{ role: 'user', content: 'word '.repeat(64) }],
});
const load =
  RATE === undefined
    ? { executor: 'constant-vus', vus: Number(CONCURRENCY) }
    : {
        executor: 'constant-arrival-rate',
        rate: Number(RATE),
        timeUnit: '1s',
        preAllocatedVUs: 200,
      };

export const options = {
  discardResponseBodies: true,
  summaryTrendStats: ['p(50)', 'p(99)'],
  scenarios: { load: { ...load, duration: `${SECONDS}s` } },
};

// k6 asks for it.
// oxlint-disable-next-line import/no-default-export
export default function () {
  http.post(`${URL}/v1/chat/completions`, body, {
    headers: { 'Content-Type': 'application/json' },
  });
}

export function handleSummary({ metrics }) {
  const { values } = metrics.http_req_waiting;
  const ttft = { p50: values['p(50)'] / 1e3, p99: values['p(99)'] / 1e3 };
  return { stdout: `\n${JSON.stringify({ failed: 0, ttft, itl: null })}\n` };
}
