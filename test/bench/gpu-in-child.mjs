/* Reads GPUs and nothing else; says on stdout what that cost. Arguments: nvidia-smi, seconds to settle, seconds to measure. */
import { setFlagsFromString } from 'node:v8';
import { GpuCollector } from '../../dist/collectors/gpu/gpu.js';
import { anchoredClock, takeAnchor } from '../../dist/src/core/clock.js';

// As trace attach does.
setFlagsFromString('--no-memory-reducer');
setFlagsFromString('--no-incremental-marking');
const [program, settle, measure] = process.argv.slice(2);
const holder = { processes: () => new Set([4711]), visible: () => [], sameView: true };
const collector = new GpuCollector({ program, holder });
await collector.probe();
const controller = new AbortController();
let before = process.cpuUsage();
let from = performance.now();
setTimeout(
  () => {
    before = process.cpuUsage();
    from = performance.now();
  },
  Number(settle) * 1e3,
);
setTimeout(() => controller.abort(), (Number(settle) + Number(measure)) * 1e3);
const context = { signal: controller.signal, clock: anchoredClock(takeAnchor()) };
let samples = 0;
let own = 0;
const target = { kind: 'process', pid: 1, startTicks: 0 };
for await (const { kind } of collector.observe(target, context)) {
  if (kind === 'sample') samples++;
  const { user, system } = process.cpuUsage(before);
  own = (user + system) / 1e6 / ((performance.now() - from) / 1e3);
}
console.log(JSON.stringify({ own, samples, memory: process.memoryUsage().rss }));
