/** Torn read: two fields that belong together are read with an await between. */

import { setImmediate as turn } from 'node:timers/promises';

const FIXED = process.argv[2] === 'fixed';

/** Other work, that takes some turns of the loop. */
async function outside(turns) {
  for (let left = turns; left > 0; left--) await turn();
}

const config = { host: 'old', port: 1 };

async function read() {
  if (FIXED) return [config.host, config.port];
  const { host } = config;
  await turn();
  return [host, config.port];
}

async function write() {
  await outside(8);
  config.host = 'new';
  config.port = 2;
}

const [[host, port]] = await Promise.all([read(), write()]);
process.exitCode = (host === 'old') === (port === 1) ? 0 : 1;
