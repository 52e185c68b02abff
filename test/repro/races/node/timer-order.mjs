/** Two timers: the one that cleans up is taken to fire after the one that uses. */

const FIXED = process.argv[2] === 'fixed';

let session = { open: true };
let used = 0;

setTimeout(() => {
  used = session.open ? 1 : -1;
}, 1);
setTimeout(() => {
  if (FIXED && used === 0) {
    const again = setInterval(() => {
      if (used === 0) return;
      clearInterval(again);
      session = { open: false };
    }, 1);
    return;
  }
  session = { open: false };
}, 12);
process.on('exit', () => {
  process.exitCode = used === 1 ? 0 : 1;
});
