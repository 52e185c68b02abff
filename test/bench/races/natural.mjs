// How often a planted race fails by itself, in fresh loops of one process, a worker each: natural.mjs <file> <runs>
import { Worker } from 'node:worker_threads';

/** Workers at a time: most of a run is the start of its worker, which waits for others on a busy machine. */
const AT_ONCE = 4;

const [file, runs] = process.argv.slice(2);
let left = Number(runs);
let failed = 0;
await Promise.all(
  Array.from({ length: AT_ONCE }, async () => {
    while (left-- > 0) {
      const worker = new Worker(file, { argv: [], stderr: true, stdout: true });
      const code = await new Promise((done) => {
        worker.on('error', () => {});
        worker.on('exit', done);
      });
      if (code !== 0) failed++;
    }
  }),
);
console.log(failed);
