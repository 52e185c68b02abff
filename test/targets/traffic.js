import { Agent, get } from 'node:http';
import { setTimeout as wait } from 'node:timers/promises';
import { parseArgs } from 'node:util';

/*
 * Real HTTP over loopback: `--count` requests at `--rate` a second to a port of this machine, kept-alive, then it ends. It gives
 * up on its own when the target has gone.
 */

const { values: flags } = parseArgs({
  options: {
    port: { type: 'string' },
    path: { type: 'string', default: '/' },
    rate: { type: 'string', default: '50' },
    count: { type: 'string', default: '500' },
  },
});

const FAILURES_ALLOWED = 20;
const agent = new Agent({ keepAlive: true, maxSockets: 8 });
const tally = { ok: 0, failed: 0 };

function send() {
  get({ host: '127.0.0.1', port: Number(flags.port), path: flags.path, agent }, (answer) => {
    answer.resume().on('end', () => (tally.ok += 1));
  }).on('error', () => (tally.failed += 1));
}

process.stdout.write(`READY ${process.pid} 0\n`);
for (let sent = 0; sent < Number(flags.count) && tally.failed < FAILURES_ALLOWED; sent++) {
  send();
  await wait(1000 / Number(flags.rate));
}
agent.destroy();
process.stdout.write(`${JSON.stringify(tally)}\n`);
