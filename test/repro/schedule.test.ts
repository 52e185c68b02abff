import { describe, expect, it } from 'vitest';
import {
  endsAlike,
  firstDivergence,
  type Point,
  readRecord,
} from '../../repro/schedules/course.ts';
import { programOf } from '../../repro/schedules/program.ts';
import { readSchedule, type Schedule, writeSchedule } from '../../repro/schedules/schedule.ts';
import { pctBound, scheduleOf, STRATEGY_NAMES } from '../../repro/schedules/strategies.ts';
import { TraceError } from '../../src/core/errors.ts';

const setting = { clock: 'virtual', threads: false, include: [] } as const;
const facts = { points: 20, tasks: 4, depth: 3, places: ['a.py:3'] };

function failureOf(text: string): TraceError {
  try {
    readSchedule(text);
  } catch (error) {
    if (error instanceof TraceError) return error;
  }
  throw new Error(`${text} was taken`);
}

describe('a schedule as a string', () => {
  const schedules: readonly Schedule[] = [
    { ...setting, strategy: 'none' },
    {
      ...setting,
      strategy: 'explicit',
      delays: [
        ['0.1', 3, 2],
        ['0', 1, 7],
      ],
    },
    ...STRATEGY_NAMES.map((name) => scheduleOf(7, { ...facts, name }, setting)),
  ];

  it.each(schedules.map((one) => [one.strategy, one] as const))('is read again: %s', (_, one) => {
    const text = writeSchedule('python', one);
    expect(text).toMatch(/^py1\.[\w-]+$/);
    expect(readSchedule(text)).toEqual({ language: 'python', schedule: one });
  });

  it('is refused where it is none', () => {
    const [whole] = schedules;
    const text = writeSchedule('node', whole ?? { ...setting, strategy: 'none' });
    for (const wrong of ['', 'py1.', 'xx1.abcd', `${text}!`, text.slice(0, -8), 'py1.AAAA'])
      expect(failureOf(wrong).exitCode, wrong).toBe(2);
    const odd = writeSchedule('python', {
      ...setting,
      strategy: 'explicit',
      delays: [['a', -1, 2]],
    });
    expect(failureOf(odd).exitCode).toBe(2);
  });

  it('of a newer form is said to be one', () => {
    expect(failureOf('py2.abcd').exitCode).toBe(5);
  });
});

describe('strategies', () => {
  it('give each seed a schedule of its own, the same each time', () => {
    for (const name of STRATEGY_NAMES) {
      const of = (seed: number) => JSON.stringify(scheduleOf(seed, { ...facts, name }, setting));
      expect(of(5)).toBe(of(5));
      expect(new Set(Array.from({ length: 50 }, (_, seed) => of(seed))).size).toBe(50);
    }
  });

  it('know the bound of PCT: 1 / (n k^(d-1))', () => {
    expect(pctBound({ ...facts, name: 'pct' }, true)).toBeCloseTo(1 / (4 * 20 ** 2), 12);
    expect(pctBound({ ...facts, name: 'pct' }, false)).toBeCloseTo(1 / 20 ** 3, 12);
  });
});

const point = (line: number, turns = 0): Point => ({
  task: '0',
  step: line,
  turns,
  frames: [`a.py:${line}`],
  inside: 'f',
});

describe('two runs', () => {
  it('part at the first point that differs', () => {
    expect(firstDivergence([point(1), point(2)], [point(1), point(2)])).toBeNull();
    expect(firstDivergence([point(1), point(2)], [point(1), point(3)])?.after).toBe(1);
    expect(firstDivergence([point(1)], [point(1), point(3)])).toMatchObject({
      after: 1,
      one: null,
    });
    expect(firstDivergence([point(1, 2)], [point(1)])?.after).toBe(0);
  });

  it('end alike when code, signal and hanging are', () => {
    const end = { code: 0, signal: null, hang: null };
    expect(endsAlike(end, end)).toBe(true);
    expect(endsAlike(end, { ...end, code: 1 })).toBe(false);
    expect(endsAlike(end, { code: null, signal: null, hang: 'timeout' })).toBe(false);
    expect(endsAlike({ ...end, hang: 'deadlock' }, { ...end, hang: 'timeout' })).toBe(true);
  });
});

describe('what a driver wrote', () => {
  it('is read line by line, without what is cut off or strange', () => {
    const text =
      '["point","0.1",2,3,["/x/a.py:5"],"f"]\n["point",7,2]\nnull\n["hang"]\n["modules",["json"]]\n["point","0.1",3';
    expect(readRecord(text)).toEqual({
      points: [{ task: '0.1', step: 2, turns: 3, frames: ['/x/a.py:5'], inside: 'f' }],
      isDeadlock: true,
      modules: ['json'],
    });
  });
});

describe('a command', () => {
  const place = { cwd: '/', env: { PATH: '/usr/bin:/bin' } };

  it('is taken apart into interpreter, its flags, and the script', () => {
    expect(programOf(['python3.11', '-W', 'error', '-u', 'a.py', '-x'], place)).toMatchObject({
      language: 'python',
      interpreter: 'python3.11',
      flags: ['-W', 'error', '-u'],
      argv: ['a.py', '-x'],
    });
    expect(programOf(['python3', '-m', 'app', '1'], place).argv).toEqual(['-m', 'app', '1']);
    expect(programOf(['/x/node', '--no-warnings', 'a.mjs'], place).language).toBe('node');
  });

  it('is refused when it is none of Python or Node', () => {
    for (const command of [['ls'], ['python3'], ['sh', '-c', 'x'], ['nowhere-to-be-found']])
      expect(() => programOf(command, place)).toThrow(TraceError);
  });
});
