// What the healthy programs share: `program SECONDS idle|loaded PLANT_EVERY`, the planted block, and clients in a process of their own.
import { fork } from 'node:child_process';
import http from 'node:http';
import { createRequire } from 'node:module';
import { setTimeout as wait } from 'node:timers/promises';

/** Packages come from the current directory. */
export const require = createRequire(`${process.cwd()}/x.js`);

const [, program, seconds, load, plantEvery] = process.argv;

/** One real block of 60 ms. */
function plantedBlock() {
  Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0, 60);
}

/** Says READY, plants, and ends the process after its time. */
export function run(port) {
  const rate = load === 'loaded' ? 60 : 1;
  const peer = fork(program, ['load', String(port), seconds, String(rate)], { execArgv: [] });
  setInterval(plantedBlock, Number(plantEvery) * 1e3);
  console.log('READY', process.pid, port);
  setTimeout(
    () => {
      peer.kill();
      process.exit(0);
    },
    Number(seconds) * 1e3,
  );
}

/** Four connections that ask for the paths in turn, each a browser with cookies of its own; true where this is the clients' process. */
export async function isLoad(pathOf) {
  if (process.argv[2] !== 'load') return false;
  const [port, lifetime, rate] = process.argv.slice(3).map(Number);
  const end = Date.now() + lifetime * 1e3;
  const agent = new http.Agent({ keepAlive: true, maxSockets: 4 });
  const get = (path, cookie) =>
    new Promise((resolve) => {
      const headers = cookie === undefined ? {} : { cookie };
      http
        .get({ host: '127.0.0.1', port, path, agent, headers }, (answer) => {
          const [set] = answer.headers['set-cookie'] ?? [];
          answer.resume().on('end', () => resolve(set?.split(';')[0]));
        })
        .on('error', () => resolve(undefined));
    });
  const browser = async (number) => {
    const cookies = Array.from({ length: 50 });
    for (let count = number; Date.now() < end; count += 1) {
      const who = count % cookies.length;
      cookies[who] = (await get(pathOf(count), cookies[who])) ?? cookies[who];
      await wait(4e3 / rate);
    }
  };
  await Promise.all([0, 1, 2, 3].map(browser));
  return true;
}
