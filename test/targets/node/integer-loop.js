import { readFileSync } from 'node:fs';
import { parseArgs } from 'node:util';

/* The Node counterpart of integer_loop.py: work done per window of a tenth of a second, as JSON Lines. */

const WINDOW_NS = 100_000_000;
const CHUNK = 500_000;

const { values: flags } = parseArgs({
  options: {
    shape: { type: 'string', default: 'loop' },
    seconds: { type: 'string', default: '20' },
  },
});

const mono = () => Number(process.hrtime.bigint());
const cpu = () => Number(readFileSync('/proc/self/schedstat', 'utf8').split(' ')[0]);

function integerWork() {
  let total = 0;
  for (let i = 0; i < CHUNK; i++) total = (total + i * 7) & 0xffff;
  return total;
}

const end = mono() + Number(flags.seconds) * 1e9;
let window = { start: mono(), cpu: cpu(), work: 0 };

function step() {
  integerWork();
  window.work += 1;
  const now = mono();
  if (now - window.start >= WINDOW_NS) {
    const used = cpu();
    process.stdout.write(
      `${JSON.stringify({ start_ns: window.start, end_ns: now, cpu_ns: used - window.cpu, work: window.work })}\n`,
    );
    window = { start: now, cpu: used, work: 0 };
  }
  return now < end;
}

function loop() {
  if (step()) setImmediate(loop);
}

process.stdout.write(`READY ${process.pid} 0\n`);
if (flags.shape === 'plain') while (step());
else loop();
