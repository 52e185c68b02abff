/** Sends recorded requests again and looks whether an oracle holds. Run: node traffic.mjs */

import { readFileSync } from 'node:fs';
import http from 'node:http';
import https from 'node:https';
import net from 'node:net';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';

const PARAMETERS = JSON.parse(
  readFileSync(
    process.env.REPRO_PARAMETERS || join(import.meta.dirname, 'parameters.json'),
    'utf8',
  ),
);
const {
  traffic: TRAFFIC,
  oracle: ORACLE,
  attempts: ATTEMPTS,
  concurrency: CONCURRENCY,
} = PARAMETERS;
const { REPRO_BASE_URL: GIVEN, REPRO_API_KEY: KEY } = process.env;
const BASE = new URL(GIVEN || TRAFFIC.base_url);
// What a server may take for one answer before it counts as failed.
const TIMEOUT_MS = (ORACLE.within_s ?? PARAMETERS.timeout_s) * 1000;

class CannotTest extends Error {}

/** One request: what is sent, and what comes back. */
class Attempt {
  constructor(number) {
    const { requests } = TRAFFIC;
    this.number = number;
    this.request = requests[number % requests.length];
    // region: cross-talk
    const body = this.request.body?.replaceAll('{nonce}', mark(number)) ?? null;
    this.request = { ...this.request, body };
    // endregion
    // Once through them all, they start again where the last one was sent.
    const rounds = Math.floor(number / requests.length);
    this.offset = this.request.offset_s + rounds * requests.at(-1).offset_s;
    this.status = null;
    this.answer = '';
    this.error = null;
    // region: head-of-line
    this.began = 0;
    this.ended = 0;
    // endregion
  }

  async send() {
    const headers = { ...this.request.headers };
    if (KEY) headers.Authorization = `Bearer ${KEY}`;
    const { body } = this.request;
    if (body !== null) headers['Content-Length'] = Buffer.byteLength(body);
    // region: head-of-line
    this.began = performance.now();
    // endregion
    try {
      await this.exchange(headers, body);
      if (this.status >= 400) this.error = `${this.status} ${this.answer.slice(0, 200)}`;
    } catch (error) {
      this.error = `${error.code ?? error.name}: ${error.message}`;
    }
    // region: head-of-line
    this.ended = performance.now();
    // endregion
  }

  async exchange(headers, body) {
    const path = BASE.pathname.replace(/\/$/, '') + this.request.path;
    const { request } = BASE.protocol === 'https:' ? https : http;
    await new Promise((resolve, reject) => {
      const options = { method: this.request.method, path, headers, agent: false };
      const sent = request(BASE.origin, options, (response) => {
        this.status = response.statusCode;
        response.setEncoding('utf8');
        response.on('data', (text) => (this.answer += text));
        response.on('end', resolve);
        response.on('error', reject);
      });
      sent.setTimeout(TIMEOUT_MS, () => sent.destroy(new Error('no answer in time')));
      sent.on('error', reject);
      sent.end(body);
    });
  }

  toString() {
    return `attempt ${this.number} (${this.request.method} ${this.request.path})`;
  }
}

/** Without a server nothing can be tested. */
async function checkServer() {
  if (!/^https?:$/.test(BASE.protocol))
    throw new CannotTest(`${BASE.href} is no address of http or https`);
  if (KEY && !GIVEN)
    throw new CannotTest(
      `REPRO_API_KEY is set, and ${BASE.host} comes from a recording: ` +
        'name the server that may have the key in REPRO_BASE_URL',
    );
  const port = Number(BASE.port || (BASE.protocol === 'https:' ? 443 : 80));
  const socket = net.connect(port, BASE.hostname.replace(/^\[|\]$/g, ''));
  try {
    await new Promise((resolve, reject) => {
      socket.once('connect', resolve);
      socket.once('error', reject);
      socket.setTimeout(TIMEOUT_MS, () => reject(new Error('no connection in time')));
    });
  } catch (error) {
    throw new CannotTest(`${BASE.origin} does not answer: ${error.code ?? error.message}`);
  } finally {
    socket.destroy();
  }
}

/** Sends each at its time after the first, that many at once at most. */
async function sendAll(attempts) {
  const waiting = attempts.values();
  const start = performance.now();
  async function work() {
    for (const attempt of waiting) {
      await sleep(Math.max(0, start + attempt.offset * 1000 - performance.now()));
      await attempt.send();
    }
  }
  await Promise.all(Array.from({ length: Math.min(CONCURRENCY, attempts.length) }, work));
}

function makeAttempts() {
  return Array.from({ length: ATTEMPTS }, (_, number) => new Attempt(number));
}

// region: cross-talk, same-alone, head-of-line
/** The attempts that were answered; without any there is nothing to look at. */
function answered(attempts) {
  const found = attempts.filter(({ error }) => error === null);
  if (found.length > 0) return found;
  throw new CannotTest(`every request failed, the first: ${attempts[0]}: ${attempts[0].error}`);
}

// endregion
// region: same-alone
/** The text of an answer of a model, streamed or not, without its id and time; any other answer as it is. */
function said(answer) {
  const events = answer.split('\n').filter((line) => line.startsWith('data:'));
  const texts = [];
  for (const event of events.length > 0 ? events.map((line) => line.slice(5)) : [answer]) {
    try {
      for (const choice of JSON.parse(event).choices)
        texts.push((choice.message ?? choice.delta ?? {}).content ?? choice.text ?? '');
    } catch {
      continue;
    }
  }
  return texts.length > 0 ? texts.join('') : answer;
}

// endregion
// region: exception
/** No request may fail. */
async function checkExceptions() {
  const attempts = makeAttempts();
  await sendAll(attempts);
  return attempts
    .filter(({ error }) => error !== null)
    .map((one) => `${String(one)}: ${one.error}`);
}

// endregion
// region: cross-talk
function mark(number) {
  return `mark-${String(number).padStart(6, '0')}-end`;
}

/** No answer may hold the mark of another request. */
async function checkAnswers() {
  const attempts = makeAttempts();
  await sendAll(attempts);
  return answered(attempts).flatMap((one) => {
    const marks = new Set(one.answer.match(/mark-\d{6}-end/g));
    marks.delete(mark(one.number));
    return marks.size === 0 ? [] : [`${one} was answered with ${[...marks].join(', ')}`];
  });
}

// endregion
// region: same-alone
/** The same request must be answered alike alone and in company. */
async function checkAlone() {
  const expected = [];
  for (let number = 0; number < Math.min(ATTEMPTS, TRAFFIC.requests.length); number++) {
    const alone = [new Attempt(number), new Attempt(number)];
    for (const one of alone) await one.send();
    const texts = new Set(answered(alone).map(({ answer }) => said(answer)));
    if (texts.size > 1)
      throw new CannotTest('the same request is answered differently alone: is its temperature 0?');
    expected.push([...texts][0]);
  }
  const attempts = makeAttempts();
  await sendAll(attempts);
  return answered(attempts).flatMap((one) => {
    const [text, alone] = [said(one.answer), expected[one.number % TRAFFIC.requests.length]];
    if (text === alone) return [];
    return [
      `${one} gave ${JSON.stringify(text.slice(0, 60))}, alone ${JSON.stringify(alone.slice(0, 60))}`,
    ];
  });
}

// endregion
// region: no-progress
/** Every request must be answered in time. */
async function checkProgress() {
  const attempts = makeAttempts();
  await sendAll(attempts);
  const late = attempts.filter(({ status }) => status === null);
  return late.map((one) => `${String(one)}: no answer within ${TIMEOUT_MS / 1000} s`);
}

// endregion
// region: head-of-line
/** A small request must be answered quickly while others run. */
async function checkOthers() {
  const limit = (ORACLE.limit_s ?? 0.1) * 1000;
  const waits = [];
  let isOver = false;
  async function beat() {
    while (!isOver) {
      const one = new Attempt(0);
      one.request = { method: 'GET', path: ORACLE.probe ?? '/', headers: {}, body: null };
      await one.send();
      if (one.ended - one.began > limit) waits.push(one);
      await sleep(20);
    }
  }
  const attempts = makeAttempts();
  const heart = beat();
  await sendAll(attempts);
  isOver = true;
  await heart;
  return answered(attempts).flatMap((one) => {
    const kept = waits.filter(({ began, ended }) => one.began < ended && began < one.ended);
    if (kept.length === 0) return [];
    const longest = Math.max(...kept.map(({ began, ended }) => ended - began)) / 1000;
    return [`another waited ${longest.toFixed(3)} s while ${one} ran`];
  });
}

// endregion
const CHECKS = {
  // region: exception
  exception: checkExceptions,
  // endregion
  // region: cross-talk
  'cross-talk': checkAnswers,
  // endregion
  // region: same-alone
  'same-alone': checkAlone,
  // endregion
  // region: no-progress
  'no-progress': checkProgress,
  // endregion
  // region: head-of-line
  'head-of-line': checkOthers,
  // endregion
};

try {
  const check = CHECKS[ORACLE.kind];
  if (check === undefined) throw new CannotTest(`this script has no check for ${ORACLE.kind}`);
  await checkServer();
  const lines = await check();
  for (const line of lines.slice(0, 5)) console.log(line);
  console.log(`Errors: ${lines.length} / ${ATTEMPTS}`);
  process.exitCode = lines.length > 0 ? 1 : 0;
} catch (error) {
  if (!(error instanceof CannotTest)) throw error;
  console.error(`cannot test: ${error.message}`);
  process.exitCode = 125;
}
