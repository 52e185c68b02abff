// semver: a range with a long run of spaces keeps the event loop busy.
import { fork } from 'node:child_process';
import http from 'node:http';
import { createRequire } from 'node:module';
import { setTimeout as wait } from 'node:timers/promises';

const require = createRequire(`${process.cwd()}/x.js`); // packages come from the current directory

async function load(port, seconds) {
  const end = Date.now() + seconds * 1e3;
  for (let count = 0; Date.now() < end; count += 1) {
    const range = count % 5 === 4 ? `>=1.2.3${' '.repeat(12_000 + count)}<1.3.0` : '^1.2.3';
    await fetch(`http://127.0.0.1:${port}/`, { method: 'POST', body: range }).then((answer) =>
      answer.text(),
    );
    await wait(100);
  }
}

function serve(seconds) {
  const semver = require('semver');
  let longest = 0;
  const server = http.createServer(async (request, response) => {
    let body = '';
    for await (const chunk of request) body += chunk;
    const before = process.cpuUsage();
    const valid = semver.validRange(body);
    const { user, system } = process.cpuUsage(before);
    longest = Math.max(longest, (user + system) / 1e3);
    response.end(String(valid));
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
