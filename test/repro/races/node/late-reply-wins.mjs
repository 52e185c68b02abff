/** Out of order: the reply to an older question overwrites the one to a newer. */

import { setImmediate as turn } from 'node:timers/promises';

const FIXED = process.argv[2] === 'fixed';

/** Other work, that takes some turns of the loop. */
async function outside(turns) {
  for (let left = turns; left > 0; left--) await turn();
}

let asked = 0;
let shown = '';

async function type(text, after) {
  const mine = ++asked;
  await outside(after);
  await turn();
  if (!FIXED || mine === asked) shown = text;
}

await Promise.all([type('a', 1), type('ab', 8)]);
process.exitCode = shown === 'ab' ? 0 : 1;
