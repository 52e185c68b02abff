import { openSync, readFileSync, writeSync } from 'node:fs';
import { get } from 'node:http';
import { setImmediate as turn, setTimeout as wait } from 'node:timers/promises';
import { parseArgs } from 'node:util';
import { KINDS, prepareHttp } from './faults.js';

/*
 * What a target does and when, from the command line, and the truth about it: the same flags and the same JSON Lines as the
 * Python targets' plan.py, which explains them.
 */

const MIN_SPACING_MS = 60;
const PLANTED_MS = 60;
const SMALL_WORK_NS = 300_000n;

const { values: flags } = parseArgs({
  options: {
    truth: { type: 'string' },
    kinds: { type: 'string', default: '' },
    durations: { type: 'string', default: '60' },
    reps: { type: 'string', default: '1' },
    seed: { type: 'string', default: '1' },
    'spacing-ms': { type: 'string', default: String(MIN_SPACING_MS) },
    'jitter-ms': { type: 'string', default: '60' },
    'start-s': { type: 'string', default: '2' },
    seconds: { type: 'string', default: '60' },
    saturated: { type: 'boolean', default: false },
    healthy: { type: 'boolean', default: false },
    'plant-s': { type: 'string', default: '0' },
    'helper-port': { type: 'string', default: '0' },
  },
});

const mono = () => Number(process.hrtime.bigint());
const file = flags.truth === undefined ? undefined : openSync(flags.truth, 'w');
let small = 0;

function write(record) {
  if (file !== undefined) writeSync(file, `${JSON.stringify(record)}\n`);
}

function runTimes() {
  return readFileSync('/proc/self/schedstat', 'utf8').split(' ').map(Number);
}

/** Blocks, and logs it. */
function perform(kind, ms) {
  const fault = KINDS[kind];
  const [cpu, waited] = runTimes();
  const start = mono();
  fault(ms);
  const end = mono();
  const [cpuAfter, waitedAfter] = runTimes();
  write({
    type: 'block',
    kind,
    ms,
    function: fault.name,
    start_ns: start,
    end_ns: end,
    cpu_ns: cpuAfter - cpu,
    wait_ns: waitedAfter - waited,
  });
}

/** What a request does: blocks the loop, or awaits in the healthy twin. */
export async function work(kind, ms) {
  if (flags.healthy) await wait(ms);
  else perform(kind, ms);
}

/** mulberry32: the same order for the same seed. */
function chances(seed) {
  let state = seed >>> 0;
  return () => {
    state = (state + 0x6d2b79f5) >>> 0;
    let t = Math.imul(state ^ (state >>> 15), 1 | state);
    t = (t + Math.imul(t ^ (t >>> 7), 61 | t)) ^ t;
    return ((t ^ (t >>> 14)) >>> 0) / 4_294_967_296;
  };
}

function steps() {
  const chance = chances(Number(flags.seed));
  const kinds = flags.kinds.split(',').filter((kind) => kind !== '');
  const durations = flags.durations.split(',').map(Number);
  const plan = [];
  for (let rep = 0; rep < Number(flags.reps); rep++)
    for (const kind of kinds) for (const ms of durations) plan.push({ kind, ms });
  for (let i = plan.length - 1; i > 0; i--) {
    const j = Math.floor(chance() * (i + 1));
    [plan[i], plan[j]] = [plan[j], plan[i]];
  }
  const spacing = Math.max(Number(flags['spacing-ms']), MIN_SPACING_MS);
  return plan.map((step) => ({ ...step, pause: spacing + chance() * Number(flags['jitter-ms']) }));
}

/** Ordinary load: short callbacks, one after the other. */
async function smallWork() {
  for (;;) {
    const end = process.hrtime.bigint() + SMALL_WORK_NS;
    while (process.hrtime.bigint() < end);
    small += 1;
    await turn();
  }
}

/** The needle that a watcher must find where nothing else is to be found. */
async function plant(every) {
  for (let turns = 0; ; turns++) {
    await wait(every * 1000);
    perform(turns % 2 === 0 ? 'sleep' : 'spin', PLANTED_MS);
  }
}

/** A real request over loopback, made from the target's own loop. */
function request(port, path) {
  return new Promise((resolve, reject) => {
    get({ port, host: '127.0.0.1', path, agent: false }, (answer) => {
      answer.resume().on('end', () => {
        if (answer.statusCode === 200) resolve();
        else reject(new Error(`HTTP ${answer.statusCode}`));
      });
    }).on('error', reject);
  });
}

/** The whole life of a target once it listens: says READY, follows the plan, ends the process when its time is up. */
export async function run(port) {
  const started = mono();
  const end = started + Number(flags.seconds) * 1e9;
  write({
    type: 'start',
    pid: process.pid,
    at_ns: started,
    wall: Date.now() / 1000,
    argv: process.argv.slice(2),
  });
  if (flags.kinds.includes('http')) prepareHttp(Number(flags['helper-port']));
  process.stdout.write(`READY ${process.pid} ${port}\n`);
  if (flags.saturated) void smallWork();
  if (Number(flags['plant-s']) > 0) void plant(Number(flags['plant-s']));
  await wait(Number(flags['start-s']) * 1000);
  for (const { pause, kind, ms } of steps()) {
    if (mono() + pause * 1e6 > end) break;
    await wait(pause);
    await request(port, `/work?kind=${kind}&ms=${ms}`);
  }
  process.stdout.write('DONE\n');
  await wait(Math.max(0, (end - mono()) / 1e6));
  write({ type: 'end', at_ns: mono(), small, cpu_s: process.cpuUsage().user / 1e6 });
  process.exit(0);
}
