// Express: the expression of a route with two parameters in one segment backtracks.
import { fork } from 'node:child_process';
import http from 'node:http';
import { createRequire } from 'node:module';
import { setTimeout as wait } from 'node:timers/promises';

const require = createRequire(`${process.cwd()}/x.js`); // packages come from the current directory

async function load(port, seconds) {
  const end = Date.now() + seconds * 1e3;
  for (let count = 0; Date.now() < end; count += 1) {
    const path = count % 5 === 4 ? `/flights/${'-'.repeat(30_000)}/x` : '/flights/LAX-SFO';
    await fetch(`http://127.0.0.1:${port}${path}`).then((answer) => answer.text());
    await wait(100);
  }
}

function serve(seconds) {
  const express = require('express');
  const app = express();
  let longest = 0;
  app.use((request, response, next) => {
    const before = process.cpuUsage();
    next();
    const { user, system } = process.cpuUsage(before);
    longest = Math.max(longest, (user + system) / 1e3);
  });
  app.get('/flights/:from-:to', (request, response) => response.json(request.params));
  const server = http.createServer({ maxHeaderSize: 2 ** 17 }, app).listen(0, '127.0.0.1', () => {
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
