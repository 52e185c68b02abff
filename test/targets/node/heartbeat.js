/* The Node counterpart of heartbeat.py: how late a timer of 1 ms is, as JSON Lines. */

const INTERVAL_NS = 1_000_000;
const WINDOW_NS = 250_000_000;

const mono = () => Number(process.hrtime.bigint());
const end = mono() + Number(process.argv[2]) * 1e9;
let window = { start: mono(), late: [] };

function beat(before) {
  const now = mono();
  window.late.push(Math.trunc((now - before - INTERVAL_NS) / 1000));
  if (now - window.start >= WINDOW_NS) {
    const line = { start_ns: window.start, end_ns: now, late_us: window.late };
    process.stdout.write(`${JSON.stringify(line)}\n`);
    window = { start: mono(), late: [] };
  }
  if (now < end) schedule();
}

function schedule() {
  setTimeout(beat, INTERVAL_NS / 1e6, mono());
}

process.stdout.write(`READY ${process.pid} 0\n`);
schedule();
