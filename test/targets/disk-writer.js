import { closeSync, fsyncSync, openSync, rmSync, writeSync } from 'node:fs';

/* Writes a file of 64 MiB to the disk again and again, for the seconds given: the neighbour that makes others wait for it. */

const [path = '/tmp/tracewright-disk-writer', seconds = '10'] = process.argv.slice(2);
const block = Buffer.alloc(1 << 20, 'x');
process.stdout.write(`READY ${process.pid} 0\n`);
const end = Date.now() + Number(seconds) * 1000;
while (Date.now() < end) {
  const file = openSync(path, 'w');
  for (let written = 0; written < 64 && Date.now() < end; written++) writeSync(file, block);
  fsyncSync(file);
  closeSync(file);
}
rmSync(path, { force: true });
