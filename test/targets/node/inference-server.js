import { createServer } from 'node:http';
import { parseArgs } from 'node:util';

/*
 * A server with llama.cpp's page and OpenAI's API, whose numbers evolve: `--page` metrics (default), none (501), elsewhere (a redirect) or unknown
 * (no names that anybody knows); `--restart-after` so many pages its counters begin anew; `--answer` tokens (default) or error (500). Says
 * `READY <pid> <port>`, and on GET /asked what it was asked for.
 */

const { values: flags } = parseArgs({
  options: {
    page: { type: 'string', default: 'metrics' },
    'restart-after': { type: 'string', default: '0' },
    answer: { type: 'string', default: 'tokens' },
    elsewhere: { type: 'string', default: '' },
  },
});

const asked = { pages: 0, models: 0, completions: [] };

function page() {
  asked.pages += 1;
  const restart = Number(flags['restart-after']);
  const since = restart > 0 && asked.pages > restart ? asked.pages - restart : asked.pages;
  if (flags.page === 'unknown') return `somebodys_requests_total ${since}\n`;
  return [
    '# TYPE llamacpp:prompt_tokens_total counter',
    `llamacpp:prompt_tokens_total ${since * 100}`,
    '# TYPE llamacpp:tokens_predicted_total counter',
    `llamacpp:tokens_predicted_total ${since * 50}`,
    '# TYPE llamacpp:n_decode_total counter',
    `llamacpp:n_decode_total ${since * 60}`,
    '# TYPE llamacpp:requests_processing gauge',
    `llamacpp:requests_processing ${since % 2}`,
    '# TYPE llamacpp:requests_deferred gauge',
    'llamacpp:requests_deferred 0',
    '',
  ].join('\n');
}

function complete(request, response) {
  let body = '';
  request.setEncoding('utf8').on('data', (text) => (body += text));
  request.on('end', () => {
    asked.completions.push({ body: JSON.parse(body), traceparent: request.headers.traceparent });
    if (flags.answer === 'error') {
      response.writeHead(500, { 'content-type': 'application/json' });
      response.end('{"error":{"message":"out of memory"}}');
      return;
    }
    response.writeHead(200, { 'content-type': 'text/event-stream' });
    const event = (delta, finish = null) =>
      `data: ${JSON.stringify({ choices: [{ index: 0, delta, finish_reason: finish }] })}\n\n`;
    setTimeout(() => response.write(event({ content: 'a' })), 20);
    setTimeout(() => response.end(`${event({ content: 'b' }, 'length')}data: [DONE]\n\n`), 40);
  });
}

const server = createServer((request, response) => {
  const { pathname } = new URL(request.url ?? '/', 'http://here');
  if (pathname === '/asked') response.end(JSON.stringify(asked));
  else if (pathname === '/v1/chat/completions') complete(request, response);
  else if (pathname === '/v1/models') {
    asked.models += 1;
    response.end('{"object":"list","data":[{"id":"tiny"},{"id":"other"}]}');
  } else if (pathname !== '/metrics') response.writeHead(404).end();
  else if (flags.page === 'none') response.writeHead(501).end('{"error":"disabled"}');
  else if (flags.page === 'elsewhere')
    response.writeHead(302, { location: flags.elsewhere }).end(page());
  else response.writeHead(200, { 'content-type': 'text/plain' }).end(page());
});
server.listen(0, '127.0.0.1', () => {
  const address = server.address();
  process.stdout.write(`READY ${process.pid} ${address.port}\n`);
});
