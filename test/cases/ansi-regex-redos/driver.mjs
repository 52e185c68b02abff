// ansi-regex: stripping escape sequences from a text with a long run of semicolons keeps the event loop busy.
import { fork } from 'node:child_process';
import http from 'node:http';
import { createRequire } from 'node:module';
import { setTimeout as wait } from 'node:timers/promises';

const require = createRequire(`${process.cwd()}/x.js`); // packages come from the current directory

async function load(port, seconds) {
  const end = Date.now() + seconds * 1e3;
  for (let count = 0; Date.now() < end; count += 1) {
    const text = count % 5 === 4 ? `\u001B[${';'.repeat(12_000)}` : '\u001B[1mhello';
    await fetch(`http://127.0.0.1:${port}/`, { method: 'POST', body: text }).then((answer) =>
      answer.text(),
    );
    await wait(100);
  }
}

function serve(seconds) {
  const strip = require('strip-ansi');
  let longest = 0;
  const server = http.createServer(async (request, response) => {
    let body = '';
    for await (const chunk of request) body += chunk;
    const before = process.cpuUsage();
    const plain = strip(body);
    const { user, system } = process.cpuUsage(before);
    longest = Math.max(longest, (user + system) / 1e3);
    response.end(plain);
  });
  server.listen(0, '127.0.0.1', () => {
    const peer = fork(process.argv[1], ['load', String(server.address().port), String(seconds)], {
      execArgv: [],
    });
    console.log('READY', process.pid, server.address().port);
    setTimeout(() => {
      peer.kill();
      console.log(JSON.stringify({ bug: longest > 60, longest_cpu_ms: Math.round(longest) }));
      process.exit(0);
    }, seconds * 1e3);
  });
}

if (process.argv[2] === 'load') await load(Number(process.argv[3]), Number(process.argv[4]));
else serve(Number(process.argv[2] ?? 10));
