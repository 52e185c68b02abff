/**
 * Calls one function from many places at once and looks whether an oracle holds.
 *
 * Run: node call.mjs
 */

// region: script
import { spawnSync } from 'node:child_process';
// endregion
// region: growth
import { readdirSync } from 'node:fs';
// endregion
import { readFile } from 'node:fs/promises';
import { createRequire } from 'node:module';
import { resolve } from 'node:path';
import { env, exit } from 'node:process';
import { pathToFileURL } from 'node:url';
// region: growth
import { setFlagsFromString } from 'node:v8';
import { runInNewContext } from 'node:vm';
// endregion
// region: no-progress, head-of-line
import { Worker } from 'node:worker_threads';
// endregion

const HERE = import.meta.dirname;
const file = env.REPRO_PARAMETERS || resolve(HERE, 'parameters.json');
const parameters = JSON.parse(await readFile(file, 'utf8'));
const { call, oracle, attempts: ATTEMPTS, concurrency: CONCURRENCY } = parameters;
// region: exception, cross-talk, lost-update, same-alone, no-progress, head-of-line, transactions, script
const random = randomFrom(Number(env.REPRO_SEED || parameters.seed));
// endregion

function cannotTest(reason) {
  console.error(`cannot test: ${reason}`);
  exit(125);
}

// region: exception, cross-talk, lost-update, same-alone, no-progress, head-of-line, transactions, script
/** Mulberry32: the same numbers for the same seed. */
function randomFrom(seed) {
  let state = seed >>> 0;
  return () => {
    state = (state + 0x6d2b79f5) >>> 0;
    let mixed = Math.imul(state ^ (state >>> 15), state | 1);
    mixed ^= mixed + Math.imul(mixed ^ (mixed >>> 7), mixed | 61);
    return ((mixed ^ (mixed >>> 14)) >>> 0) / 2 ** 32;
  };
}

// endregion
/** What './file.mjs#name' or 'package#name' exports. */
async function load(target) {
  const [path, name = 'default'] = target.split('#');
  try {
    const isFile = path.startsWith('.');
    const module = await import(isFile ? pathToFileURL(resolve(HERE, path)).href : path).catch(
      (error) => {
        if (isFile) throw error;
        return createRequire(resolve(HERE, 'x.js'))(path);
      },
    );
    const found = name
      .split('.')
      .reduce((at, key) => at?.[key] ?? (key === name ? at?.default?.[key] : undefined), module);
    if (typeof found !== 'function') throw new TypeError(`it exports no function ${name}`);
    return found;
  } catch (error) {
    return cannotTest(`${target}: ${error.message}`);
  }
}

/** An attempt: what it is given, and, later, what came of it. */
function makeAttempt(number) {
  const args = call.args[number % call.args.length];
  // region: cross-talk
  if (oracle.kind === 'cross-talk') {
    const own = JSON.parse(JSON.stringify(args).replaceAll('{nonce}', mark(number)));
    return { number, args: own, isDone: false };
  }
  // endregion
  return { number, args, isDone: false };
}

// region: exception, cross-talk, lost-update, same-alone, no-progress, head-of-line, transactions, script
/** All attempts, in an order that the seed decides. */
function makeAttempts() {
  const attempts = Array.from({ length: ATTEMPTS }, (_, number) => makeAttempt(number));
  for (let i = attempts.length - 1; i > 0; i--) {
    const j = Math.floor(random() * (i + 1));
    [attempts[i], attempts[j]] = [attempts[j], attempts[i]];
  }
  return attempts;
}

// endregion
/** Makes the attempts, `concurrency` at once; each worker takes the next one. */
async function callAll(caller, attempts, concurrency = CONCURRENCY) {
  const waiting = attempts.values();
  const work = async () => {
    for (const attempt of waiting) {
      // Others have their turn where this one never waits.
      await Promise.resolve();
      // region: head-of-line
      attempt.began = performance.now();
      // endregion
      try {
        attempt.output = await caller.call(...caller.first, ...attempt.args);
      } catch (error) {
        attempt.error = error ?? new Error('nothing was thrown');
      }
      attempt.isDone = true;
      // region: head-of-line
      attempt.ended = performance.now();
      // endregion
    }
  };
  await Promise.all(Array.from({ length: Math.min(concurrency, attempts.length) }, work));
}

// region: exception, cross-talk, lost-update, same-alone, head-of-line, transactions, script
function raised({ number, error }) {
  return `attempt ${number}: ${error?.name ?? 'Error'}: ${error?.message ?? String(error)}`;
}

// endregion
// region: cross-talk, lost-update, same-alone, head-of-line
/** The attempts that were answered; without any there is nothing to look at. */
function answered(attempts) {
  const found = attempts.filter(({ error }) => error === undefined);
  if (found.length === 0) cannotTest(`every attempt failed, the first: ${raised(attempts[0])}`);
  return found;
}

// endregion
// region: exception
/** No attempt may fail. */
async function checkExceptions(caller) {
  const attempts = makeAttempts();
  await callAll(caller, attempts);
  return [attempts.filter(({ error }) => error !== undefined).map(raised), ATTEMPTS];
}

// endregion
// region: lost-update
/** Each attempt adds a step to a value that another function reads; all steps must be there in the end. */
async function checkUpdates(caller) {
  const read = await load(oracle.read);
  const step = oracle.step ?? 1;
  const attempts = makeAttempts();
  const before = await read(...caller.first);
  await callAll(caller, attempts);
  const after = await read(...caller.first);
  const made = answered(attempts).length;
  const lost = Math.min(made, Math.ceil(Math.abs(made - (after - before) / step)));
  return [Array(lost).fill(`${before} + ${made} updates by ${step} gave ${after}`), made];
}

// endregion
// region: cross-talk
const MARK = /mark-\d{6}-end/g;

function mark(number) {
  return `mark-${String(number).padStart(6, '0')}-end`;
}

/** No answer may hold the mark of another attempt. */
async function checkAnswers(caller) {
  const attempts = makeAttempts();
  await callAll(caller, attempts);
  const lines = answered(attempts).flatMap(({ number, output }) => {
    const strange = new Set(shown(output).match(MARK) ?? []);
    strange.delete(mark(number));
    return strange.size === 0
      ? []
      : [`attempt ${number} was answered with ${[...strange].join(', ')}`];
  });
  return [lines, ATTEMPTS];
}

// endregion
// region: cross-talk, same-alone
function shown(output) {
  return typeof output === 'string' ? output : (JSON.stringify(output) ?? String(output));
}

// endregion
// region: same-alone
/** The same input must give the same output alone and in company. */
async function checkAlone(caller) {
  const expected = [];
  for (let number = 0; number < Math.min(ATTEMPTS, call.args.length); number++) {
    const alone = [makeAttempt(number), makeAttempt(number)];
    await callAll(caller, alone, 1);
    const [one, other] = answered(alone).map(({ output }) => shown(output));
    if (other !== undefined && one !== other)
      cannotTest(`the same input gives different outputs alone: ${one} and ${other}`);
    expected.push(one);
  }
  const attempts = makeAttempts();
  await callAll(caller, attempts);
  const lines = answered(attempts).flatMap(({ number, output }) => {
    const alone = expected[number % call.args.length];
    return shown(output) === alone
      ? []
      : [`attempt ${number} gave ${shown(output)}, alone ${alone}`];
  });
  return [lines, ATTEMPTS];
}

// endregion
// region: growth
const BLOCKS = 20;
/** With fewer attempts a block, what the first of them set up looks like growth. */
const LEAST_BLOCK = 10;
/** Student's t, 97.5 %, for the means of 20 blocks. */
const T_QUANTILE = 2.093;
/** What an attempt may leave behind for ever, on average: bytes, or things of the other kinds. */
const ALLOWED = { rss: 64, heap: 48, fds: 0.02, handles: 0.02 };

// Code that V8 compiles anew while the program runs lies in its heap, comes and goes by kilobytes, and is no growth.
const CONSTANT_CODE = [
  '--no-opt',
  '--no-maglev',
  '--no-sparkplug',
  '--no-lazy-feedback-allocation',
  '--no-flush-bytecode',
];
for (const flag of [...CONSTANT_CODE, '--expose-gc']) setFlagsFromString(flag);
const collectGarbage = runInNewContext('gc');

async function readings() {
  // What was settled is let go at a later turn.
  await new Promise((done) => setTimeout(done, 5));
  collectGarbage();
  collectGarbage();
  const { rss, heapUsed, external } = process.memoryUsage();
  return {
    rss,
    heap: heapUsed + external,
    fds: readdirSync('/proc/self/fd').length,
    handles: process.getActiveResourcesInfo().length,
  };
}

/** After a warm-up, further attempts must leave nothing behind: the mean growth of blocks, with its interval. */
async function checkGrowth(caller) {
  const size = Math.floor(ATTEMPTS / (BLOCKS + 5));
  if (size < LEAST_BLOCK)
    cannotTest(`growth takes ${LEAST_BLOCK * (BLOCKS + 5)} attempts at least, not ${ATTEMPTS}`);
  const block = (count) => Array.from({ length: count }, (_, number) => makeAttempt(number));
  await callAll(caller, block(5 * size));
  // The first collections let go of what starting up has left, which would look like a heap that shrinks.
  for (let i = 0; i < 2; i++) await readings();
  const names = oracle.of ?? Object.keys(ALLOWED);
  // Made beforehand: what is kept of the readings must not grow itself.
  const kept = Object.fromEntries(names.map((name) => [name, new Float64Array(BLOCKS + 1)]));
  for (let i = 0; i <= BLOCKS; i++) {
    const read = await readings();
    for (const name of names) kept[name][i] = read[name];
    if (i < BLOCKS) await callAll(caller, block(size));
  }
  const lines = names.flatMap((name) => {
    const steps = Array.from(kept[name].subarray(1), (after, i) => (after - kept[name][i]) / size);
    const mean = steps.reduce((sum, one) => sum + one, 0) / BLOCKS;
    const squares = steps.reduce((sum, one) => sum + (one - mean) ** 2, 0);
    const half = T_QUANTILE * Math.sqrt(squares / (BLOCKS - 1) / BLOCKS);
    const grew = steps.filter((one) => one > 0).length;
    // A few large steps are a table that was made larger: a leak grows in most blocks.
    if (mean - half <= ALLOWED[name] || grew <= BLOCKS / 2) return [];
    const interval = `${(mean - half).toPrecision(4)} to ${(mean + half).toPrecision(4)}`;
    const often = `in ${grew} of ${BLOCKS} blocks`;
    return [`${name}: +${mean.toPrecision(4)} an attempt (95 % interval ${interval}), ${often}`];
  });
  return [lines, names.length];
}

// endregion
// region: no-progress
/** Ends the process from a thread of its own when nobody has told it of progress: the main thread may be stuck itself. */
const WATCH = `
const { workerData, parentPort } = require('node:worker_threads');
const { writeSync } = require('node:fs');
const { withinMs, attempts, done } = workerData;
let last = -1;
let since = Date.now();
setInterval(() => {
  const now = Atomics.load(done, 0);
  if (now !== last) [last, since] = [now, Date.now()];
  if (now === attempts) process.exit();
  if (Date.now() - since < withinMs) return;
  writeSync(1, 'nothing ended within ' + withinMs / 1000 + ' s\\n');
  writeSync(1, 'Errors: ' + (attempts - now) + ' / ' + attempts + '\\n');
  process.kill(process.pid, 'SIGTERM');
}, 50);
`;

/** Some attempt must end every few seconds, until all have. */
async function checkProgress(caller) {
  const done = new Int32Array(new SharedArrayBuffer(4));
  const withinMs = (oracle.within_s ?? 10) * 1000;
  const watch = new Worker(WATCH, {
    eval: true,
    workerData: { withinMs, attempts: ATTEMPTS, done },
  });
  process.once('SIGTERM', () => exit(1));
  const counting = async (...args) => {
    try {
      return await caller.call(...args);
    } finally {
      Atomics.add(done, 0, 1);
    }
  };
  await callAll({ ...caller, call: counting }, makeAttempts());
  await watch.terminate();
  return [[], ATTEMPTS];
}

// endregion
// region: head-of-line
const BEAT_MS = 5;
/** Who has waited this long over the limit has waited too long: the rest of it is not waited for. */
const PATIENCE_MS = 10_000;
/** Says so from a thread of its own: the main thread may be stuck for minutes. It ends as soon as it goes on. */
const WATCH_BEATS = `
const { workerData } = require('node:worker_threads');
const { writeSync } = require('node:fs');
const { mostMs, attempts, counts } = workerData;
const EVERY_MS = 50;
let [last, waited] = [-1, 0];
const watch = setInterval(() => {
  const [beats, running] = [Atomics.load(counts, 0), Atomics.load(counts, 1)];
  waited = beats === last ? waited + EVERY_MS : 0;
  last = beats;
  if (waited < mostMs || running === 0) return;
  const several = running === 1 ? 'an attempt' : running + ' attempts';
  writeSync(1, 'another has waited ' + mostMs / 1000 + ' s while ' + several + ' ran\\n');
  writeSync(1, 'Errors: ' + running + ' / ' + attempts + '\\n');
  process.kill(process.pid, 'SIGTERM');
  clearInterval(watch);
}, EVERY_MS);
`;

/** Something else must get its turn while attempts run. */
async function checkOthers(caller) {
  const limitMs = (oracle.limit_s ?? 0.1) * 1000;
  const waits = [];
  // Beats, and attempts that run.
  const counts = new Int32Array(new SharedArrayBuffer(8));
  const workerData = { mostMs: limitMs + PATIENCE_MS, attempts: ATTEMPTS, counts };
  const watch = new Worker(WATCH_BEATS, { eval: true, workerData });
  process.once('SIGTERM', () => exit(1));
  const counting = async (...args) => {
    Atomics.add(counts, 1, 1);
    try {
      return await caller.call(...args);
    } finally {
      Atomics.sub(counts, 1, 1);
    }
  };
  let since = performance.now();
  const beat = () => {
    const now = performance.now();
    if (now - since - BEAT_MS > limitMs) waits.push({ from: since, to: now });
    since = now;
    Atomics.add(counts, 0, 1);
  };
  const heart = setInterval(beat, BEAT_MS);
  const attempts = makeAttempts();
  await callAll({ ...caller, call: counting }, attempts);
  // One more beat: what came last may have kept it.
  await new Promise((resolved) => setTimeout(resolved, 2 * BEAT_MS));
  clearInterval(heart);
  await watch.terminate();
  const lines = answered(attempts).flatMap(({ number, began, ended }) => {
    const kept = waits.filter(({ from, to }) => began < to && from < ended);
    const longest = Math.max(...kept.map(({ from, to }) => to - from - BEAT_MS));
    if (kept.length === 0) return [];
    return [`another waited ${(longest / 1000).toFixed(3)} s while attempt ${number} ran`];
  });
  return [lines, ATTEMPTS];
}

// endregion
// region: transactions
/** SQLSTATE: deadlock_detected, serialization_failure. */
const AT_ODDS = { '40P01': 'deadlock', 40001: 'serialization failure' };

/** The database may not end an attempt because of what another does at the same time. */
async function checkTransactions(caller) {
  const attempts = makeAttempts();
  await callAll(caller, attempts);
  const lines = [];
  for (const one of attempts) {
    if (one.error === undefined) continue;
    const code = one.error?.code ?? one.error?.cause?.code;
    if (code in AT_ODDS) lines.push(`attempt ${one.number}: ${AT_ODDS[code]} (${code})`);
    else cannotTest(`not of other transactions: ${raised(one)}`);
  }
  return [lines, ATTEMPTS];
}

// endregion
// region: script
/** A program that reads all attempts as lines of JSON decides: 0 right, 1 wrong with a line for each failure. */
async function checkByScript(caller) {
  const attempts = makeAttempts();
  await callAll(caller, attempts);
  const input = attempts
    .map((one) => {
      const { number, args, output = null, error } = one;
      const failure = error === undefined ? null : raised(one);
      return `${JSON.stringify({ attempt: number, args, output, error: failure })}\n`;
    })
    .join('');
  const path = resolve(HERE, oracle.script);
  const command = /\.[cm]?js$/.test(path) ? [process.execPath, path] : [path];
  const ended = spawnSync(command[0], command.slice(1), {
    input,
    encoding: 'utf8',
    stdio: ['pipe', 'pipe', 'inherit'],
  });
  if (ended.status !== 0 && ended.status !== 1)
    cannotTest(`${oracle.script} ended with ${ended.status ?? ended.error?.message}`);
  const said = ended.stdout.split('\n').filter((line) => line.trim() !== '');
  const wrong = said.length === 0 ? [`${oracle.script} found it wrong`] : said;
  return [ended.status === 0 ? [] : wrong.slice(0, ATTEMPTS), ATTEMPTS];
}

// endregion
const CHECKS = {
  // region: exception
  exception: checkExceptions,
  // endregion
  // region: lost-update
  'lost-update': checkUpdates,
  // endregion
  // region: cross-talk
  'cross-talk': checkAnswers,
  // endregion
  // region: same-alone
  'same-alone': checkAlone,
  // endregion
  // region: growth
  growth: checkGrowth,
  // endregion
  // region: no-progress
  'no-progress': checkProgress,
  // endregion
  // region: head-of-line
  'head-of-line': checkOthers,
  // endregion
  // region: transactions
  transactions: checkTransactions,
  // endregion
  // region: script
  script: checkByScript,
  // endregion
};

const check = CHECKS[oracle.kind] ?? cannotTest(`this script has no check for ${oracle.kind}`);
const target = await load(call.target);
const setup = call.setup === undefined ? () => undefined : await load(call.setup);
let made;
try {
  made = await setup();
} catch (error) {
  cannotTest(`setup: ${error.message}`);
}
const [lines, total] = await check({ call: target, first: made === undefined ? [] : [made] });
for (const line of lines.slice(0, 5)) console.log(line);
console.log(`Errors: ${lines.length} / ${total}`);
exit(lines.length === 0 ? 0 : 1);
