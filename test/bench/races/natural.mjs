// How often a planted race fails by itself, in fresh loops of one process, a worker each: natural.mjs <file> <runs>
import { Worker } from 'node:worker_threads';

const [file, runs] = process.argv.slice(2);
let failed = 0;
for (let run = 0; run < Number(runs); run++) {
  const worker = new Worker(file, { argv: [], stderr: true, stdout: true });
  const code = await new Promise((done) => {
    worker.on('error', () => {});
    worker.on('exit', done);
  });
  if (code !== 0) failed++;
}
console.log(failed);
