import { describe, expect, it } from 'vitest';
import { queryShape } from '../../src/core/query-shape.ts';

describe('the shape of a statement', () => {
  it.each([
    [
      "SELECT * FROM t WHERE name = 'Bob O''Brien' AND n=42",
      'SELECT * FROM t WHERE name = ? AND n=?',
    ],
    [
      "UPDATE t2 SET a1 = a1 - 1.5e-3,\n\tb = E'it\\'s' WHERE id IN (1, 2,3)",
      'UPDATE t2 SET a1 = a1 - ?, b = ? WHERE id IN (?, …)',
    ],
    ["ALTER ROLE x PASSWORD 'hunter2'", 'ALTER ROLE x PASSWORD ?'],
    [
      'SELECT $1::int, "Weird 7 name", $$dollar ; 5$$, $f$x$$y$f$',
      'SELECT $1::int, "Weird 7 name", ?, …',
    ],
    ["SELECT 1 -- the key is 'k3y'\n, /* or 'this' */ 0xFF", 'SELECT ?, …'],
    ["SELECT U&'d\\0061t', b'101', X'1F', N'x'", 'SELECT ?, …'],
    ["SELECT '\u001b[31m' || col", 'SELECT ? || col'],
  ])('%s', (sql, shape) => {
    expect(queryShape(sql)).toBe(shape);
  });

  it('takes a literal or comment that was cut off for one that reaches to the end', () => {
    expect(queryShape("INSERT INTO t VALUES ('a secr")).toBe('INSERT INTO t VALUES (?');
    expect(queryShape("INSERT INTO t VALUES ('a secr\\")).toBe('INSERT INTO t VALUES (?');
    expect(queryShape('SELECT $$a secr')).toBe('SELECT ?');
    expect(queryShape('SELECT 1 /* a secr')).toBe('SELECT ?');
  });

  it('is bounded, printable and quick, whatever it is given', () => {
    const started = performance.now();
    for (const piece of ["'", '"', '$', '$$', '/*', '?,', '1', 'E\\', "''", '\u0000', '-- ']) {
      const shape = queryShape(piece.repeat(100_000));
      expect(shape.length).toBeLessThanOrEqual(1000);
      // oxlint-disable-next-line no-control-regex
      expect(shape).not.toMatch(/[\u0000-\u001f]/);
    }
    expect(performance.now() - started).toBeLessThan(10_000);
  });
});
