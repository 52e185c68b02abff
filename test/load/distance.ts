/** The largest distance between the distribution of the values and a cumulative one (Kolmogorov and Smirnov). */
export function distance(values: readonly number[], cumulative: (value: number) => number): number {
  const sorted = values.toSorted((a, b) => a - b);
  return Math.max(
    ...sorted.map((value, i) => {
      const expected = cumulative(value);
      const above = (i + 1) / sorted.length - expected;
      return Math.max(above, expected - i / sorted.length);
    }),
  );
}
