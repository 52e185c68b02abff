// A Node process whose "inspector" is a server of its own, which answers with the lines of a file:
// two to GET, the others in turn to what a client asks.
// Usage: node --inspect-port=<port> inspector.mjs <port> <file>
import { readFileSync } from 'node:fs';
import http from 'node:http';
import { WebSocketServer } from 'ws';

const [port, file] = process.argv.slice(2);
const answers = () => readFileSync(file, 'latin1').split('\n');
const server = http.createServer((request, response) => {
  const [version = '', list = ''] = answers();
  response.end((request.url.endsWith('version') ? version : list).replaceAll('PORT', port));
});
new WebSocketServer({ server }).on('connection', (client) => {
  const [, , ...replies] = answers();
  let asked = 0;
  client.on('error', () => {});
  client.on('message', (message) => {
    const { id } = JSON.parse(message);
    client.send(replies[asked % replies.length].replaceAll('"ID"', id));
    asked += 1;
  });
});
server.listen(Number(port), '127.0.0.1', () => {
  process.stdout.write(`READY ${process.pid} ${port}\n`);
});
