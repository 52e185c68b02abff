/** Cross-talk: two calls share a connection and the slot of its reply. */

import { setImmediate as turn } from 'node:timers/promises';

const FIXED = process.argv[2] === 'fixed';

/** Other work, that takes some turns of the loop. */
async function outside(turns) {
  for (let left = turns; left > 0; left--) await turn();
}

/** One at a time, where it is fixed. */
function makeLock() {
  let last = Promise.resolve();
  return (work) => {
    if (!FIXED) return work();
    const mine = last.then(work);
    last = mine.catch(() => {});
    return mine;
  };
}

const locked = makeLock();
const connection = { reply: '' };

async function ask(question, after) {
  await outside(after);
  return await locked(async () => {
    connection.reply = `answer to ${question}`;
    await turn();
    return connection.reply;
  });
}

const replies = await Promise.all([ask('one', 1), ask('two', 8)]);
process.exitCode = replies.join() === 'answer to one,answer to two' ? 0 : 1;
