/**
 * Zero for a field that will hold fractions, or addresses. V8 keeps a field that began as 0 as a small integer; its first fraction makes
 * objects of another shape, and throws away all the code that was compiled for the old one.
 */
export const FRACTION = -0;
