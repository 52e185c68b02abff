import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { join } from 'node:path';
import { createInterface } from 'node:readline';

/*
 * `npm run demo`: starts the server beside this file, sends it traffic, attaches to it as one would to any server, shows what
 * was found, and leaves nothing running. Needs Node and a Python 3.8 to 3.13 (`PYTHON=…` chooses one).
 */

const SECONDS = 10;
/** Traffic starts before the attach and outlasts it. */
const TRAFFIC = { requests: 52, 'interval-ms': 250 };
/** The server stops by itself, should this script be killed. */
const SERVER_SECONDS = 60;
/** What `trace attach` exits with when it has found something. */
const FOUND = 1;

const here = import.meta.dirname;
const python = process.env['PYTHON'] ?? 'python3';
const children = new Set();

function start(command, args, stdio) {
  const child = spawn(command, args, { stdio });
  children.add(child);
  child.on('exit', () => children.delete(child));
  child.on('error', (error) => {
    process.stderr.write(`could not start ${command}: ${error.message}\n`);
    stop(1);
  });
  return child;
}

/** Asks what this script started to end, by its own handle of each, and sees to it that it did. */
function stop(code) {
  process.exitCode = code;
  for (const child of children) child.kill('SIGTERM');
  setTimeout(() => process.exit(code), 3_000).unref();
}
process.on('exit', () => {
  for (const child of children) child.kill('SIGKILL');
});

/** The first line a child prints, empty when it ends without one. */
async function firstLine(child) {
  for await (const line of createInterface(child.stdout)) return line;
  return '';
}

const say = (text) => process.stdout.write(`${text}\n`);

// Ctrl-C reaches the children too; trace then writes what it has, and is waited for below.
let interrupted = false;
for (const signal of ['SIGINT', 'SIGTERM']) process.on(signal, () => (interrupted = true));

say(
  `Starting demo/server.py, an OpenAI-compatible server that blocks its own event loop now and then …`,
);
const server = start(
  python,
  [join(here, 'server.py'), '--seconds', String(SERVER_SECONDS)],
  ['ignore', 'pipe', 'inherit'],
);
const [, pid, port] = (await firstLine(server)).split(' ');
if (port === undefined) throw new Error(`demo/server.py did not start with ${python}`);
const traffic = start(
  process.execPath,
  [
    join(here, 'traffic.js'),
    '--port',
    port,
    ...Object.entries(TRAFFIC).flatMap(([key, value]) => [`--${key}`, String(value)]),
  ],
  ['ignore', 'pipe', 'inherit'],
);
const clients = firstLine(traffic);

say(
  `It runs as process ${pid}; clients stream from it. Now, as you would with a server of yours:\n`,
);
say(`  $ npx trace attach ${pid} --duration ${SECONDS}\n`);
const trace = start(
  process.execPath,
  [join(here, '..', 'dist', 'src', 'main.js'), 'attach', pid, '--duration', String(SECONDS)],
  ['ignore', 'inherit', 'inherit'],
);
const [code] = await once(trace, 'exit');

if (interrupted || code === 130 || code === 143) {
  stop(130);
} else if (code !== FOUND) {
  say(`\ntrace attach ended with ${code}: the planted block was not found.`);
  stop(1);
} else {
  say(`\nWhat the clients noticed meanwhile: ${await clients}`);
  say(`
Compare the place above with "THE PLANTED MISTAKE" in demo/server.py.
  See the report again:    npx trace show <the recording named above>
  See it in Jaeger:        docker run --rm -p 16686:16686 -p 4318:4318 jaegertracing/jaeger:latest
                           OTEL_EXPORTER_OTLP_ENDPOINT=http://127.0.0.1:4318 npm run demo
                           then open http://127.0.0.1:16686 and search for the service
  Try it on your own:      npx trace attach <pid>`);
  stop(0);
}
