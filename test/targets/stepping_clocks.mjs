// Preloaded into a Node program (`--import`): clocks that do what those of a machine do when somebody sets the time or closes the
// lid. STEPS is a list of [after so many seconds, the wall clock is set by so many, the machine slept for so many], as JSON; the
// seconds count from when the file STEPS_AFTER is there. The monotonic clock goes on, as CLOCK_MONOTONIC does: it does not count
// sleep.
import fs from 'node:fs';
import { syncBuiltinESMExports } from 'node:module';

const steps = JSON.parse(process.env.STEPS ?? '[]');
let began = null;
const sum = (which) => {
  if (began === null && !fs.existsSync(process.env.STEPS_AFTER)) return 0;
  began ??= performance.now();
  const now = (performance.now() - began) / 1e3;
  return steps.filter(([after]) => now >= after).reduce((all, step) => all + step[which], 0);
};
const { now } = Date;
Date.now = () => now() + (sum(1) + sum(2)) * 1e3;
const { readFileSync } = fs;
fs.readFileSync = (path, ...rest) => {
  const text = readFileSync(path, ...rest);
  if (path !== '/proc/uptime') return text;
  const [up, idle] = String(text).split(' ');
  return `${(Number(up) + sum(2)).toFixed(2)} ${idle}`;
};
syncBuiltinESMExports();
