/*
 * The Node counterpart of inside.py: `inside.js <at most>`. A Map (`app.cache.store`) that grows by 20,000 entries a second until it has so
 * many, and a function `compute` that takes half of the loop's time. A line on standard input is answered with how late the loop was at most
 * since the last one.
 */

const ENTRIES_A_TURN = 100;
const TURN_MS = 5;
const COMPUTE_MS = 2;
const most = Number(process.argv[2] ?? Infinity);

class Entry {
  constructor(number) {
    this.number = number;
    this.text = `entry ${number}`;
  }
}

const store = new Map();
globalThis.app = { cache: { store } };
let worst = 0;
let total = 0;

function remember() {
  for (let i = 0; i < ENTRIES_A_TURN && store.size < most; i++)
    store.set(store.size, new Entry(store.size));
}

function compute() {
  const until = performance.now() + COMPUTE_MS;
  while (performance.now() < until) total += Math.sqrt(total + 1);
}

function turn(due) {
  worst = Math.max(worst, performance.now() - due);
  remember();
  compute();
  setTimeout(turn, TURN_MS, performance.now() + TURN_MS);
}

process.stdin.on('data', () => {
  process.stdout.write(`LATE ${(worst / 1e3).toFixed(6)}\n`);
  worst = 0;
});
process.stdin.on('end', () => process.exit());
process.stdout.write(`READY ${process.pid} 0\n`);
turn(performance.now());
