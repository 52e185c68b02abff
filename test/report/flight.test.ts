import { describe, expect, it } from 'vitest';
import { firingText, formatTriggerValue } from '../../src/report/flight.ts';
import { buildReport } from '../../src/report/report.ts';
import { decideSurface } from '../../src/report/style.ts';
import { renderTerminal } from '../../src/report/terminal.ts';
import { blockedFinding, sampleFlight, sampleView, TERMINAL_CONTROLS } from './sample-report.ts';

const surface = decideSurface({
  env: { LANG: 'C.UTF-8' },
  isTTY: false,
  columns: 80,
  noColor: true,
});
const textOf = (flight: typeof sampleFlight): string =>
  renderTerminal(buildReport(sampleView(), [blockedFinding], { recording: null, flight }), surface);

describe('the report of a flight recorder', () => {
  it('lists its events, each with what it saw and the command that shows it', () => {
    const text = textOf(sampleFlight);
    expect(text).toMatch(
      /^Triggered: 2 events of delay>200ms, exit in .*; 7 more were not\n?\s?recorded/,
    );
    expect(text).toContain(
      '\n1  2026-01-02 03:05:45 UTC  delay>200ms: 312 ms; 4 times; at worst 480 ms;\n   also rss>4GiB\n',
    );
    expect(text).toContain(
      "\n   trace show '/srv/my app/trigger-1'\n   http://jaeger/trace/0123\n",
    );
    expect(text).toContain('\nWhat happened in 45 stretches, 3.2 min in all, was not seen');
    expect(text).toContain('\n   found F1, below\n');
    expect(text).toContain('UTC  exit: pid 4312 was killed by signal 9');
    expect(text).toContain('\n   not recorded\n');
    expect(text).toContain('loop-blocked');
    expect(text).not.toContain('none kept');
    expect(text).not.toMatch(TERMINAL_CONTROLS);
  });

  it('says when nothing fired', () => {
    const text = textOf({ ...sampleFlight, events: [], notWritten: 0 });
    expect(text).toMatch(/^Not triggered: no event of delay>200ms, exit in /);
  });
});

it('a firing is one line, whatever the process is called', () => {
  for (const event of sampleFlight.events) {
    expect(firingText(event)).not.toMatch(TERMINAL_CONTROLS);
    expect(firingText(event)).not.toContain('\n');
  }
});

it.each([
  [0.312, 's', '312 ms'],
  [4.5 * 2 ** 30, 'By', '4.5 GiB'],
  [0.93, 'ratio', '93 %'],
  [1234, 'count', '1,234'],
  [20, '1/s', '20/s'],
] as const)('%d in %s is written %s', (value, dimension, text) => {
  expect(formatTriggerValue(value, dimension)).toBe(text);
});
