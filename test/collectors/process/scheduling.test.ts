import { describe, expect, it } from 'vitest';
import { type SchedulerSpan, SchedulerTimes } from '../../../collectors/process/scheduling.ts';

const before = (tid: number, name = 'worker'): string =>
  `${`${name}-${tid}`.padStart(16)}    [001] d..2.   `;
const switched = (at: number, prev: number, state: string, next: number, name = 'worker'): string =>
  `${before(prev)}${at.toFixed(6)}: sched_switch: prev_comm=${name} prev_pid=${prev} prev_prio=120 prev_state=${state} ==> next_comm=${name} next_pid=${next} next_prio=120`;
const woken = (at: number, tid: number): string =>
  `${before(0, '<idle>')}${at.toFixed(6)}: sched_wakeup: comm=worker pid=${tid} prio=120 target_cpu=001`;

function timesOf(lines: readonly string[], tids: readonly number[] = [7]) {
  const spans: SchedulerSpan[] = [];
  const times = new SchedulerTimes(100, tids, (span) => spans.push(span));
  for (const line of lines) times.take(line);
  const threads = times.end(110, () => 'asleep');
  return { times, threads, spans };
}

describe('times of threads by the kernel’s events', () => {
  it('are those in which it ran, waited for a core, and slept, and make up the whole', () => {
    const { threads, spans } = timesOf([
      '# tracer: nop',
      switched(101, 7, 'S', 0),
      woken(104, 7),
      switched(104.5, 0, 'R', 7),
      switched(106, 7, 'R+', 9),
      switched(108, 9, 'S', 7),
      switched(109, 7, 'D', 0),
    ]);
    expect(threads).toEqual([
      {
        tid: 7,
        name: 'worker',
        running: 3.5,
        waiting: 2.5,
        asleep: 3,
        held: 1,
        switches: 2,
        longestWait: 2,
      },
    ]);
    expect(spans.map(({ state }) => state)).toEqual([
      'running',
      'asleep',
      'waiting',
      'running',
      'waiting',
      'running',
      'held',
    ]);
  });

  it('of a thread without an event are those of the one state that it was in', () => {
    expect(timesOf([]).threads).toMatchObject([{ asleep: 10, running: 0, waiting: 0 }]);
  });

  it('end when the thread does, and begin with the first event of one that came later', () => {
    const ended = timesOf([switched(102, 7, 'X', 0)]).threads;
    expect(ended).toMatchObject([{ running: 2, asleep: 0 }]);
    const times = new SchedulerTimes(100, [], () => {});
    times.add(8);
    times.take(switched(105, 0, 'R', 8));
    times.take(switched(106, 8, 'S', 0));
    expect(times.end(110, () => null)).toMatchObject([{ running: 1, waiting: 0, asleep: 4 }]);
  });

  it('are not misled by the names of threads, and count what was lost or cannot be read', () => {
    const evil = 'x prev_pid=9 prev_state=R ==> next_comm=y';
    const { times, threads } = timesOf([
      switched(101, 7, 'S', 0, evil),
      'CPU:1 [LOST 12 EVENTS]',
      'garbage',
      `${before(7)}102.000000: sched_switch: prev_comm=`,
    ]);
    expect(threads).toMatchObject([{ name: evil, running: 1, asleep: 9 }]);
    expect([times.lost, times.unread]).toEqual([12, 2]);
  });
});
