/** Faults that were planted, each beside its healthy twin. */

const turn = () => new Promise((done) => setImmediate(done));

let balance = 0;
export const readBalance = () => balance;

export async function deposit() {
  const before = balance;
  await turn();
  balance = before + 1;
}

export async function depositAtOnce() {
  await turn();
  balance += 1;
}

const free = [1, 2, 3];

export async function take() {
  if (free.length === 0) return;
  await turn();
  const one = free.pop();
  if (one === undefined) throw new Error('nothing is left');
  await turn();
  free.push(one);
}

export async function takeAtOnce() {
  const one = free.pop();
  if (one === undefined) return;
  await turn();
  free.push(one);
}

let last;

export async function echoShared(text) {
  last = text;
  await turn();
  return { answer: last };
}

export async function echo(text) {
  await turn();
  return { answer: text };
}

let busy = 0;

export async function batched(number) {
  busy += 1;
  await turn();
  const answer = number + (busy === 1 ? 0 : 1e-9);
  busy -= 1;
  return answer;
}

export async function unbatched(number) {
  await turn();
  return number;
}

const kept = [];
export const leak = () =>
  void kept.push({ text: 'x'.repeat(50) + kept.length, more: [kept.length] });
export const leakNot = async () => ({ text: 'x'.repeat(50), more: [] });

let holder = Promise.resolve();

/** Waits for the one before, which never lets go when it is the tenth. */
export function waitForOther(number) {
  const before = holder;
  holder = before.then(() => (number === 2 ? new Promise(() => {}) : turn()));
  return holder;
}

export const waitForTurn = () => turn();

export async function block() {
  const until = performance.now() + 300;
  while (performance.now() < until);
  await turn();
}

export function blockLong() {
  const until = performance.now() + 2500;
  while (performance.now() < until);
}

export const blockNot = () => new Promise((done) => setTimeout(done, 300));
