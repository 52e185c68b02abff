import { createServer } from 'node:http';

/*
 * OpenAI's API over a list of all that was ever asked: `remembers` goes through it for each request, which makes each slower than the one before;
 * `forgets` keeps the last few. Says `READY <pid> <port>`; ends with its standard input.
 */

const [mode] = process.argv.slice(2);
/** Entries that each request leaves behind: 10 requests a second make some 20 ms of work after 45 s. */
const ENTRIES = 2000;
const kept = [];

function similar(text) {
  let found = 0;
  for (const entry of kept) if (entry.text.length === text.length && entry.at % 7 === 3) found++;
  return found;
}

const server = createServer((request, response) => {
  let body = '';
  request.setEncoding('utf8').on('data', (part) => (body += part));
  request.on('end', () => {
    const found = similar(body);
    for (let at = 0; at < ENTRIES; at++) kept.push({ text: body, at });
    if (mode === 'forgets') kept.splice(0, Math.max(0, kept.length - 10 * ENTRIES));
    const event = (delta, finish = null) =>
      `data: ${JSON.stringify({ choices: [{ index: 0, delta, finish_reason: finish }] })}\n\n`;
    response.writeHead(200, { 'content-type': 'text/event-stream' });
    response.write(event({ content: String(found) }));
    setTimeout(() => response.end(`${event({ content: 'b' }, 'length')}data: [DONE]\n\n`), 5);
  });
});
server.listen(0, '127.0.0.1', () =>
  process.stdout.write(`READY ${process.pid} ${server.address().port}\n`),
);
process.stdin.resume().on('end', () => process.exit(0));
