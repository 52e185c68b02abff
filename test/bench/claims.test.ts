import { describe, expect, it } from 'vitest';
import {
  alignClaims,
  claimsOfAustin,
  claimsOfBlocksnoop,
  claimsOfPerf,
  claimsOfPySpy,
} from './peers/claims.ts';

/* Lines as the tools print them, shortened; what is made of them stands in docs/benchmarks.md. */

const EVENTS = '/usr/lib/python3.11/asyncio/events.py';
const TARGET = '/srv/test/targets/python/faults.py';

describe('the output of py-spy', () => {
  it('shows a callback as long as its frame is open, by the innermost function of the target', () => {
    const frame = (ph: string, ts: number, name: string, filename: string) => {
      return { ph, ts, tid: 7, name, args: { filename } };
    };
    const open = [
      frame('B', 0, 'BaseEventLoop._run_once', '/usr/lib/python3.11/asyncio/base_events.py'),
      frame('B', 100_000, 'Handle._run', EVENTS),
      frame('B', 100_000, 'blocking_exec', TARGET),
      frame('B', 110_000, 'run', '/usr/lib/python3.11/subprocess.py'),
    ];
    const closed = [
      frame('E', 190_000, 'run', ''),
      frame('E', 200_000, 'blocking_exec', ''),
      frame('E', 200_000, 'Handle._run', ''),
      frame('E', 300_000, 'BaseEventLoop._run_once', ''),
    ];
    expect(claimsOfPySpy(JSON.stringify([...open, ...closed]))).toEqual([
      { from: 0.1, to: 0.2, function: 'blocking_exec' },
    ]);
  });
});

describe('the output of Austin', () => {
  it('is a line a sample with the time since the one before, of which short callbacks are left out', () => {
    const idle = 'P7;T0:7;/usr/lib/python3.11/selectors.py:EpollSelector.select:468 40000';
    const busy = `P7;T0:7;${EVENTS}:Handle._run:84;${TARGET}:blocking_spin:20`;
    const other = `P7;T0:8;${EVENTS}:Handle._run:84 90000`;
    const text = ['# austin: 3.7.0', '', idle, `${busy} 40000`, idle, other, `${busy} 30000`];
    const claims = claimsOfAustin([...text, `${busy} 30000`, idle].join('\n'), 7);
    expect(claims).toEqual([
      { from: expect.closeTo(0.12, 6), to: expect.closeTo(0.18, 6), function: 'blocking_spin' },
    ]);
  });
});

describe('the output of perf trace', () => {
  it('shows no turn between two waits in the loop’s own epoll, whatever a nested loop waits for', () => {
    const text = `
         ? (         ):  ... [continued]: epoll_wait())                                 = 0
  1000.000 ( 50.000 ms): node/7 epoll_pwait(epfd: 13, events: 0x7f, maxevents: 1024) = 1
  1100.000 ( 60.000 ms): node/7 epoll_pwait(epfd: 21, events: 0x7f, maxevents: 1024) = 1
  1150.000 (  5.000 ms): node/9 epoll_pwait(epfd: 13, events: 0x7f, maxevents: 1024) = 1
  1250.000 ( 10.000 ms): node/7 epoll_pwait(epfd: 13, events: 0x7f, maxevents: 1024) = 1
  1270.000 ( 10.000 ms): node/7 epoll_pwait(epfd: 13, events: 0x7f, maxevents: 1024) = 1`;
    expect(claimsOfPerf(text, 7)).toEqual([{ from: 1.05, to: 1.25, function: null }]);
  });
});

describe('the output of blocksnoop', () => {
  it('is an event a block, told at its end', () => {
    const event = { type: 'blocking_event', duration_ms: 300, timestamp_s: 1.5 };
    const lines = [{ type: 'session_start' }, { ...event, python_stacks: null }];
    const text = lines.map((line) => JSON.stringify(line)).join('\n');
    expect(claimsOfBlocksnoop(text)).toEqual([{ from: 1.2, to: 1.5, function: null }]);
  });
});

describe('claims on a clock of their own', () => {
  it('are shifted to where they cover most of what happened', () => {
    const block = { kind: 'spin', ms: 80, function: 'f', cpu: 0, wait: 0 };
    const truth = [
      { ...block, start: 1000, end: 1000.08 },
      { ...block, start: 1000.3, end: 1000.5 },
      { ...block, start: 1001, end: 1001.06 },
    ];
    const claims = truth.map(({ start, end }) => ({
      from: start - 990,
      to: end - 990,
      function: 'f',
    }));
    expect(alignClaims(claims, truth).map(({ from }) => from)).toEqual(
      truth.map(({ start }) => expect.closeTo(start, 6)),
    );
  });
});
