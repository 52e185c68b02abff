// What a thread of the pool does: some 20 ms of arithmetic.
module.exports = function work({ seed }) {
  let value = seed;
  for (let i = 0; i < 5_000_000; i += 1) value = (value * 1103515245 + 12345) % 2147483648;
  return value;
};
