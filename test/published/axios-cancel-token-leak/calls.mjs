// Requests with the one cancel token that ends the program's work.
import { Agent, createServer } from 'node:http';
import axios from 'axios';

export async function connect() {
  const server = createServer((request, response) => response.end('{"ok":true}'));
  await new Promise((done) => server.listen(0, '127.0.0.1', done));
  server.unref();
  const { token } = axios.CancelToken.source();
  const httpAgent = new Agent({ keepAlive: true });
  const url = `http://127.0.0.1:${server.address().port}/`;
  return { url, setting: { httpAgent, cancelToken: token } };
}

export async function get({ url, setting }) {
  return (await axios.get(url, setting)).status;
}
