import { setMaxListeners } from 'node:events';
import { join } from 'node:path';
import { setFlagsFromString } from 'node:v8';

/*
 * Watches processes as a flight recorder would: one sampling worker for all of them, each process's numbers once a second, and nobody who
 * keeps what comes. Runs what is built. Arguments: seconds, then pid:runtime for each. Prints READY when all are watched, and at the end how
 * many observations of each kind came, by JSON.
 */

const DIST = join(import.meta.dirname, '..', '..', 'dist');
const { Sampler } = await import(join(DIST, 'collectors/sampler/sampler.js'));
const { SamplingCrew } = await import(join(DIST, 'collectors/sampler/sampling-crew.js'));
const { processCollector } = await import(join(DIST, 'collectors/process/process.js'));
const { anchoredClock, takeAnchor } = await import(join(DIST, 'src/core/clock.js'));
const { readStat } = await import(join(DIST, 'src/platform/proc.js'));

const [seconds, ...named] = process.argv.slice(2);
// As attach does.
setFlagsFromString('--no-memory-reducer');
setFlagsFromString('--no-incremental-marking');
const stopped = new AbortController();
setMaxListeners(0, stopped.signal);
const context = { signal: stopped.signal, clock: anchoredClock(takeAnchor()) };
const crew = new SamplingCrew();
const counts = {};
const notes = [];
const gaps = [];

async function watch(collector, target) {
  for await (const observation of collector.observe(target, context)) {
    counts[observation.kind] = (counts[observation.kind] ?? 0) + 1;
    if (observation.kind === 'gap')
      gaps.push({ ms: (observation.to - observation.from) * 1e3, ...observation });
    if (observation.kind === 'event') notes.push(observation.body);
  }
}

const samplers = await Promise.all(
  named.map(async (name) => {
    const [pid, runtime] = name.split(':');
    const target = { kind: 'process', pid: Number(pid), ...readStat(Number(pid)) };
    const sampler = new Sampler({ runtime, threshold: 0.05, raw: false, stackSource: null, crew });
    const opened = await sampler.probe(target);
    if (!opened.available) throw new Error(`${name}: ${opened.reason}`);
    return { sampler, target };
  }),
);
const watching = samplers.flatMap(({ sampler, target }) => [
  watch(sampler, target),
  watch(processCollector(), target),
]);
process.stdout.write(`READY ${process.pid} 0\n`);
setTimeout(() => stopped.abort(), Number(seconds) * 1e3);
await Promise.all(watching);
const samples = samplers.map(({ sampler }) => sampler.statistics.samples);
const late = samplers.map(({ sampler }) => sampler.statistics.late);
process.stdout.write(`${JSON.stringify({ counts, notes, gaps, samples, late })}\n`);
