import { openSync } from 'node:fs';
import { createRequire } from 'node:module';
import { join } from 'node:path';
import { setTimeout as wait } from 'node:timers/promises';
import { Worker } from 'node:worker_threads';
import { KINDS } from '../../targets/node/faults.js';

/*
 * Fastify as deployed: `/` is healthy, `/fault/<kind>` blocks the loop, `/leak/<kind>` loses something at every request.
 * `server.js <folder that holds node_modules>`.
 */

const [, , packages = ''] = process.argv;
const { fastify } = createRequire(join(packages, 'package.json'))('fastify');

const held = [];

function answer() {
  return { items: Array.from({ length: 20 }, (_, id) => ({ id, name: `item ${id}` })) };
}

function leakingDescriptor() {
  held.push(openSync('/dev/null', 'r'));
}

function leakingMemory() {
  held.push(Array.from({ length: 4096 }, (_, i) => ({ i })));
}

function leakingThread() {
  held.push(
    new Worker('require("node:worker_threads").parentPort.on("message", () => {})', { eval: true }),
  );
}

const LEAKS = { fd: leakingDescriptor, memory: leakingMemory, thread: leakingThread };

const app = fastify();

app.get('/', async function handleRoot() {
  await wait(2);
  return answer();
});

app.get('/fault/:kind', async function handleFault(request) {
  KINDS[request.params.kind](Number(request.query.ms));
  return { ok: true };
});

app.get('/leak/:kind', async function handleLeak(request) {
  LEAKS[request.params.kind]();
  return { ok: true };
});

await app.listen({ host: '127.0.0.1', port: 0 });
process.stdout.write(`READY ${process.pid} ${app.server.address().port}\n`);
