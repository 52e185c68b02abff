/** ABA: a value is compared with what it was, and was another one in between. */

import { setImmediate as turn } from 'node:timers/promises';

const FIXED = process.argv[2] === 'fixed';

/** Other work, that takes some turns of the loop. */
async function outside(turns) {
  for (let left = turns; left > 0; left--) await turn();
}

let head = 'A';
let version = 0;
const popped = [];

function put(next) {
  head = next;
  version++;
}

async function pop() {
  const [before, seen] = [head, version];
  await turn();
  if (FIXED ? seen !== version : head !== before) return;
  popped.push('B');
  put('B');
}

async function exchange() {
  await outside(8);
  if (head !== 'A') return;
  put('C');
  popped.push('B');
  put('A');
}

await Promise.all([pop(), exchange()]);
process.exitCode = popped.length === 1 ? 0 : 1;
