/**
 * In the program: decides at each point whether it goes on now or some turns later, and writes down what it met. `--import` loads it before
 * anything of the program. Its setting comes in TRACEWRIGHT_SCHEDULE, a JSON text.
 */
import { spawnSync } from 'node:child_process';
import fs from 'node:fs';
import module from 'node:module';
import path from 'node:path';
import { fileURLToPath } from 'node:url';
import { isMainThread } from 'node:worker_threads';

const setting = JSON.parse(process.env.TRACEWRIGHT_SCHEDULE);
const { schedule } = setting;
/** As many as are compared. */
const MOST_LINES = 100_000;
const MOST_TURNS = 1000;
const { setImmediate, setTimeout } = globalThis;
/** Turns beyond take a millisecond each: what waits for a timer of another is to see it fire. */
const QUICK_TURNS = 10;

const record = isMainThread ? fs.openSync(setting.record, 'a', 0o600) : null;
let lines = 0;

function write(...values) {
  if (record === null || lines >= MOST_LINES) return;
  lines++;
  fs.writeSync(record, `${JSON.stringify(values)}\n`);
}

/** Uniform on [0, 2^53): cyrb53 (bryc, public domain). Loading node:crypto would take longer than many a program. */
function hash(text, seed) {
  let a = 0xdeadbeef ^ seed;
  let b = 0x41c6ce57 ^ seed;
  for (let at = 0; at < text.length; at++) {
    const code = text.charCodeAt(at);
    a = Math.imul(a ^ code, 2654435761);
    b = Math.imul(b ^ code, 1597334677);
  }
  a = Math.imul(a ^ (a >>> 16), 2246822507) ^ Math.imul(b ^ (b >>> 13), 3266489909);
  b = Math.imul(b ^ (b >>> 16), 2246822507) ^ Math.imul(a ^ (a >>> 13), 3266489909);
  return 4294967296 * (2097151 & b) + (a >>> 0);
}

/** Uniform on [0, 1), the same for the same words. */
function fraction(...words) {
  return hash(words.join('/'), 0) / 2 ** 53;
}

/** Of points that wait, those that do so for turns of the queue of microtasks. */
const MICROTASK_SHARE = 0.3;

/** Below zero: turns of the queue of microtasks; above: of the loop. */
function atRandom(key, rate, most) {
  if (fraction(schedule.seed, key) >= rate) return 0;
  const turns = 1 + Math.floor(most * fraction(schedule.seed, key, 'turns'));
  return fraction(schedule.seed, key, 'kind') < MICROTASK_SHARE ? -turns : turns;
}

/**
 * Most races need one place late and the others in time: each seed gives each place a mood (swarm testing, Groce et al., ISSTA 2012, over
 * places). Shares of places: never late, late at the schedule's rate, late nearly always and for longer.
 */
const QUIET_SHARE = 0.4;
const USUAL_SHARE = 0.35;
const INSISTENT = { rate: 0.9, longer: 3 };

function byMood(key, site) {
  const mood = fraction(schedule.seed, site, 'mood');
  if (mood < QUIET_SHARE) return 0;
  if (mood < QUIET_SHARE + USUAL_SHARE) return atRandom(key, schedule.rate, schedule.most);
  return atRandom(key, INSISTENT.rate, schedule.most * INSISTENT.longer);
}

function isPlace(site, place) {
  const at = place.lastIndexOf(':');
  const [file, line] = [place.slice(0, at), Number(place.slice(at + 1))];
  const from = site.lastIndexOf(':');
  const own = site.slice(0, from);
  return Math.abs(Number(site.slice(from + 1)) - line) <= 2 && `/${own}`.endsWith(`/${file}`);
}

let met = 0;
const changes = new Set();
if (schedule.strategy === 'pct')
  for (let number = 0; number < schedule.depth; number++)
    changes.add(Math.floor(schedule.points * fraction(schedule.seed, 'change', number)));
const explicit = new Map(
  (schedule.delays ?? []).map(([site, step, turns]) => [`${site}:${step}`, turns]),
);

/** How long to wait at a point, by place and by how often it was met. */
function turnsAt(site, step) {
  const key = `${site}:${step}`;
  switch (schedule.strategy) {
    case 'explicit':
      return explicit.get(key) ?? 0;
    case 'random':
      return byMood(key, site);
    case 'targeted': {
      const isNear = schedule.places.some((place) => isPlace(site, place));
      return atRandom(key, isNear ? schedule.rate : schedule.rate / 20, schedule.most);
    }
    case 'pct':
      return changes.has(met++) ? 50 : 0;
    default:
      return 0;
  }
}

const steps = new Map();

function pointAt(site) {
  const step = (steps.get(site) ?? 0) + 1;
  steps.set(site, step);
  const turns = Math.max(-MOST_TURNS, Math.min(MOST_TURNS, turnsAt(site, step)));
  write('point', site, step, turns, turns === 0 ? [site] : framesFrom(site), '');
  return turns;
}

/** Where the program is, innermost first: its callers as well, as far as V8 knows who awaits it. */
function framesFrom(site) {
  const limit = Error.stackTraceLimit;
  Error.stackTraceLimit = 30;
  const stack = (new Error().stack ?? '').split('\n');
  Error.stackTraceLimit = limit;
  const frames = [site];
  for (const line of stack) {
    const [, file, number] = /\(?(?:file:\/\/)?(\/[^()]+?):(\d+):\d+\)?$/.exec(line) ?? [];
    if (file === undefined || line.includes('node:') || !isOwn(file)) continue;
    const frame = `${nameOf(file)}:${number}`;
    if (!frames.includes(frame)) frames.push(frame);
  }
  return frames.slice(0, 8);
}

async function pass(turns) {
  // oxlint-disable-next-line typescript/await-thenable -- a turn of the queue of microtasks is what is wanted
  for (let left = turns; left < 0; left++) await undefined;
  for (let turn = 1; turn <= turns; turn++)
    await new Promise((done) => (turn > QUICK_TURNS ? setTimeout(done, 1) : setImmediate(done)));
}

/** What `value` settles to, that much later. */
async function later(value, turns) {
  try {
    return await value;
  } finally {
    await pass(turns);
  }
}

const cancelled = new WeakSet();

globalThis.__tracewright = {
  resume(value, site) {
    const turns = pointAt(site);
    return turns === 0 ? value : later(value, turns);
  },
  chain(value, site) {
    if (Object.prototype.toString.call(value) !== '[object Promise]') return value;
    const turns = pointAt(site);
    return turns === 0 ? value : later(value, turns);
  },
  async *iterate(iterable, site) {
    for await (const value of iterable) {
      await pass(pointAt(site));
      yield value;
    }
  },
  timer(set, site) {
    return (callback, ...rest) => {
      if (typeof callback !== 'function') return set(callback, ...rest);
      // "No guarantees about the exact timing of when callbacks will fire, nor of their ordering" holds for time-outs (Node's documentation, timers);
      // immediates run "in the order in which they are created", and an interval does not overtake itself.
      const queue = set === setImmediate ? immediates : [];
      const handle = set(
        (...args) => late(queue, site, () => fire(handle, callback, args)),
        ...rest,
      );
      return handle;
    };
  },
};

/** Immediates that fired and wait, the first for its turns and the others for the first. */
const immediates = [];

/** Cleared meanwhile: it would not have fired yet. */
function fire(handle, callback, args) {
  if (!cancelled.has(handle)) callback.apply(handle, args);
}

/** Runs `go` now or some turns later, and behind everything that waits in its queue. */
function late(queue, site, go) {
  const turns = pointAt(site);
  if (queue.length > 0) {
    queue.push(go);
    return;
  }
  if (turns === 0) {
    go();
    return;
  }
  queue.push(go);
  // Each in a turn of its own: what it throws is no rejection.
  const next = () => {
    const first = queue.shift();
    if (queue.length > 0) setImmediate(next);
    first();
  };
  void pass(turns).then(() => setImmediate(next));
}

/** Where in the program's own code we were called from; null when it was not. */
function callerSite() {
  const frames = (new Error().stack ?? '').split('\n').slice(2, 8);
  const [, file, line] = /\(?(?:file:\/\/)?(\/[^():]+):(\d+):\d+\)?$/.exec(frames[1] ?? '') ?? [];
  return file !== undefined && isOwn(file) ? `${nameOf(file)}:${line}` : null;
}

const MODULES = `${path.sep}node_modules${path.sep}`;

function isOwn(file) {
  if (file.startsWith(setting.own)) return false;
  const at = file.lastIndexOf(MODULES);
  if (at === -1) return true;
  const below = file.slice(at + MODULES.length);
  return schedule.include.some((name) => below.startsWith(`${name}/`));
}

function nameOf(file) {
  const relative = path.relative(setting.base, file);
  return relative.startsWith('..') ? file : relative;
}

const REWRITTEN = /\.(?:[cm]?js|[cm]?ts|jsx|tsx)$/;

/** The source with its points marked: from the cache, or by trace's own Node. */
export function marked(file, source) {
  if (!REWRITTEN.test(file) || !isOwn(file)) return null;
  if (!/\b(?:await|then|setTimeout|setImmediate|setInterval)\b/.test(source)) return null;
  const name = nameOf(file);
  const text = `${name}\n${source}`;
  const key = `${hash(text, 1).toString(36)}-${hash(text, 2).toString(36)}-${text.length}`;
  const kept = path.join(setting.cache, key);
  try {
    return fs.readFileSync(kept, 'utf8');
  } catch {
    // Not yet rewritten in this exploration.
  }
  const [program, ...args] = setting.rewriter;
  const env = { ...process.env };
  delete env.NODE_OPTIONS;
  delete env.TRACEWRIGHT_SCHEDULE;
  const done = spawnSync(program, [...args, file, name], {
    input: source,
    encoding: 'utf8',
    maxBuffer: 2 ** 28,
    env,
  });
  if (done.status !== 0) return null;
  fs.writeFileSync(`${kept}.${process.pid}`, done.stdout);
  fs.renameSync(`${kept}.${process.pid}`, kept);
  return done.stdout;
}

/** A timer that is cleared while its callback waits does not fire. */
function watchClearing() {
  for (const name of ['clearTimeout', 'clearInterval', 'clearImmediate']) {
    const clear = globalThis[name];
    globalThis[name] = (handle) => {
      if (typeof handle === 'object' && handle !== null) cancelled.add(handle);
      return clear(handle);
    };
  }
}

/** Completions of file operations with callbacks, where the program asked for them. */
function delayFiles() {
  for (const name of [
    'readFile',
    'writeFile',
    'appendFile',
    'stat',
    'readdir',
    'rename',
    'unlink',
    'mkdir',
  ]) {
    const begin = fs[name];
    fs[name] = function (...args) {
      const callback = args.at(-1);
      const site = typeof callback === 'function' ? callerSite() : null;
      if (site === null) return begin.apply(this, args);
      const done = (...results) => {
        const turns = pointAt(site);
        if (turns === 0) callback(...results);
        else void pass(turns).then(() => setImmediate(() => callback(...results)));
      };
      return begin.apply(this, [...args.slice(0, -1), done]);
    };
  }
}

/** Requests that a server takes: each on its own, so their order is nobody's. */
async function delayRequests() {
  const { default: http } = await import('node:http');
  // oxlint-disable-next-line typescript/unbound-method -- called with the server it was called on
  const emit = http.Server.prototype.emit;
  http.Server.prototype.emit = function (event, ...args) {
    if (event !== 'request') return emit.call(this, event, ...args);
    const turns = pointAt('request:0');
    if (turns <= 0) return emit.call(this, event, ...args);
    void pass(turns).then(() => setImmediate(() => emit.call(this, event, ...args)));
    return true;
  };
}

if (isMainThread) {
  watchClearing();
  delayFiles();
  if (setting.serves) await delayRequests();
  module.syncBuiltinESMExports();
  hook();
  process.on('exit', () => {
    if (process.moduleLoadList.includes('NativeModule _http_server')) write('modules', ['http']);
  });
}

function hook() {
  if (typeof module.registerHooks === 'function') {
    module.registerHooks({
      load(url, context, next) {
        const loaded = next(url, context);
        if (!url.startsWith('file:') || !/^(?:module|commonjs)/.test(loaded.format ?? ''))
          return loaded;
        const file = fileURLToPath(url);
        const source = loaded.source ?? fs.readFileSync(file);
        const text = marked(file, Buffer.from(source).toString());
        return text === null ? loaded : { ...loaded, source: text };
      },
    });
    return;
  }
  // Node 20: modules by a hook in a thread of its own, CommonJS where it is compiled.
  module.register('./hook.mjs', import.meta.url);
  const compile = module.prototype._compile;
  module.prototype._compile = function (source, file, ...rest) {
    return compile.call(this, marked(file, source) ?? source, file, ...rest);
  };
}
