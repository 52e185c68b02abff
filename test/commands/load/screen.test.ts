import { describe, expect, it } from 'vitest';
import { type LoadOptions, parseLoadOptions } from '../../../src/commands/load/options.ts';
import { LoadScreen } from '../../../src/commands/load/screen.ts';
import { batch, failure, MONO, request } from '../../load/results/sample-run.ts';
import { type FakeEnvironment, fakeEnvironment } from '../fake-environment.ts';

function options(values: Readonly<Record<string, string | boolean>> = {}): LoadOptions {
  return parseLoadOptions({ concurrency: '4', ...values }, ['127.0.0.1:8000'], { env: {} });
}

function terminal(columns = 100): FakeEnvironment {
  const environment = fakeEnvironment();
  return { ...environment, stderr: { ...environment.stderr, isTTY: true, columns } };
}

/** Batches of ten requests, ten a second. */
function feed(screen: LoadScreen, seconds: number, errors = 0): void {
  screen.stage({ stage: 0, what: 'begun', at: MONO });
  for (let tenth = 0; tenth < seconds * 10; tenth++) {
    const requests = [
      ...Array.from({ length: 10 }, (_, i) => request({ index: tenth * 10 + i })),
      ...Array.from({ length: errors }, () => failure({ class: 'cut' })),
    ];
    const from = MONO + tenth / 10;
    screen.batch(batch(requests, { from, to: from + 0.1, inFlight: 3 }));
  }
}

describe('the status line', () => {
  it('is one line that is rewritten, and taken away at the end', () => {
    const environment = terminal(120);
    const screen = new LoadScreen(options(), environment);
    feed(screen, 5, 1);
    screen.endProgress();
    const shown = environment.err().split('\r\u001b[2K');
    expect(shown.at(0)).toBe('');
    expect(shown.at(-1)).toBe('');
    expect(shown.at(-2)).toMatch(
      /^4 s of 30 s · c=4 · 3 in flight · \d+ done · (?:9\d|100) req\/s · .* tok\/s · TTFT p50 100 ms, p99 100 ms · \d+ failed$/,
    );
    // Five a second at most, however often batches come.
    expect(shown.length).toBeLessThanOrEqual(28);
  });

  it.each([30, 50, 80])('is never as wide as a terminal of %d columns', (columns) => {
    const environment = terminal(columns);
    const screen = new LoadScreen(options(), environment);
    feed(screen, 3, 1);
    // Terminals narrower than 40 columns are taken for 40.
    for (const line of environment.err().split('\r\u001b[2K')) {
      expect(line.length).toBeLessThan(Math.max(40, columns));
    }
    expect(environment.err()).toContain('failed');
  });

  it('is a line every ten seconds where there is no terminal', () => {
    const environment = fakeEnvironment();
    const screen = new LoadScreen(options({ duration: '1m' }), environment);
    feed(screen, 31);
    const lines = environment.err().trimEnd().split('\n');
    expect(lines.map((line) => /^\d+ s/.exec(line)?.[0])).toEqual(['10 s', '20 s', '30 s']);
  });

  it('is such lines on a terminal that knows no escapes, too: TERM=dumb', () => {
    const environment = { ...terminal(), env: { TERM: 'dumb' } };
    const screen = new LoadScreen(options({ duration: '1m' }), environment);
    feed(screen, 31);
    screen.endProgress();
    // oxlint-disable-next-line no-control-regex -- what a dumb terminal would show as it is
    expect(environment.err()).not.toMatch(/[\u001b\r]/);
    const lines = environment.err().trimEnd().split('\n');
    expect(lines.map((line) => /^\d+ s/.exec(line)?.[0])).toEqual(['10 s', '20 s', '30 s']);
  });

  it('is not there when it is not wanted', () => {
    for (const flag of ['quiet', 'no-progress']) {
      const environment = terminal();
      feed(new LoadScreen(options({ [flag]: true }), environment), 3);
      expect(environment.err()).toBe('');
    }
  });

  it('says what it is at', () => {
    const environment = terminal(120);
    const screen = new LoadScreen(options({ concurrency: '1,2', requests: '50' }), environment);
    const show = (at: number, stage: number) => {
      screen.batch(batch([request({ stage })], { from: MONO + at, to: MONO + at + 0.1, stage }));
      return environment.err().split('\r\u001b[2K').at(-1);
    };
    expect(show(0, 0)).toMatch(/^0 s, warm-up · c=1 \(1\/2\)/);
    screen.stage({ stage: 0, what: 'begun', at: MONO });
    expect(show(1, 0)).toMatch(/^1 s · c=1 \(1\/2\) · 4 in flight · 2 of 100 done/);
    screen.stage({ stage: 0, what: 'sending-ended', at: MONO });
    expect(show(2, 0)).toMatch(/^2 s · c=1/);
    screen.stage({ stage: 1, what: 'begun', at: MONO });
    expect(show(3, 1)).toMatch(/^3 s · c=2 \(2\/2\)/);
    screen.stage({ stage: 1, what: 'sending-ended', at: MONO });
    expect(show(4, 1)).toMatch(/^4 s, draining · c=2/);
  });
});

describe('what went wrong', () => {
  it('is said at once and kept, without what could drive a terminal', () => {
    const environment = fakeEnvironment();
    const screen = new LoadScreen(options(), environment);
    screen.recordingFailure('the disk is full\u001b[2J');
    expect(screen).toMatchObject({
      recordingFailed: true,
      problems: ['the disk is full\u001b[2J'],
    });
    expect(environment.err()).toBe('trace: the disk is full\\x1b[2J\n');
  });

  it('is kept, and not said, when trace is to be quiet', () => {
    const environment = fakeEnvironment();
    const screen = new LoadScreen(options({ quiet: true }), environment);
    screen.problem('x');
    screen.note('y');
    screen.announce(['z']);
    expect(environment.err()).toBe('');
    expect(screen.problems).toEqual(['x']);
  });
});

describe('giving up', () => {
  const refusal = (status: number) =>
    failure({ class: status === 429 ? 'http.429' : 'http.4xx', status }, { status });

  function after(requests: readonly ReturnType<typeof request>[]): string[] {
    const environment = fakeEnvironment();
    const screen = new LoadScreen(options(), environment);
    const stopped: string[] = [];
    screen.giveUp.within(environment).onStop((signal) => stopped.push(signal));
    screen.batch(batch(requests));
    screen.batch(batch(requests));
    return stopped;
  }

  it('comes after twenty refusals from the first request on, once', () => {
    expect(after(Array.from({ length: 19 }, () => refusal(404)))).toEqual(['SIGTERM']);
    expect(after(Array.from({ length: 30 }, () => refusal(401)))).toEqual(['SIGTERM']);
    expect(after(Array.from({ length: 9 }, () => refusal(404)))).toEqual([]);
  });

  it('does not come when anything was answered, or may yet be', () => {
    const refusals = Array.from({ length: 30 }, () => refusal(404));
    expect(after([request(), ...refusals])).toEqual([]);
    expect(after([...refusals.slice(0, 10), request(), ...refusals])).toEqual([]);
    expect(after(Array.from({ length: 30 }, () => refusal(429)))).toEqual([]);
    expect(after(Array.from({ length: 30 }, () => refusal(408)))).toEqual([]);
    expect(after(Array.from({ length: 30 }, () => failure({ class: 'refused' })))).toEqual([]);
  });
});
