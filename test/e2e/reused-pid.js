/**
 * Watches a process until its pid has been given to another, and tells as JSON what trace then makes of it. Arguments: the folder
 * of dist/ and the pid. Says that it is ready by the file `watching`, waits for the file `reused`; both beside dist/.
 */
import { existsSync, readFileSync, writeFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { pathToFileURL } from 'node:url';
import { setTimeout as sleep } from 'node:timers/promises';

const [, , dist, pid] = process.argv;
const load = (path) => import(pathToFileURL(join(dist, path)).href);
const { findTarget, isSameProcess } = await load('src/platform/target.js');
const { KeptFile } = await load('src/platform/proc-kept-file.js');
const { anchoredClock, takeAnchor } = await load('src/core/clock.js');
const { processCollector } = await load('collectors/process/process.js');

const { target } = findTarget({ pid });
const kept = new KeptFile(`/proc/${pid}/stat`);
const folder = dirname(dist);
writeFileSync(join(folder, 'watching'), '');
while (!existsSync(join(folder, 'reused'))) await sleep(5);

const context = { signal: new AbortController().signal, clock: anchoredClock(takeAnchor()) };
const observed = [];
for await (const { kind } of processCollector().observe(target, context)) observed.push(kind);
process.stdout.write(
  JSON.stringify({
    samePid:
      readFileSync(join(folder, 'second'), 'utf8').trim() === pid &&
      existsSync(`/proc/${pid}/stat`),
    isSame: isSameProcess(target),
    keptFile: kept.read(),
    observed,
  }),
);
