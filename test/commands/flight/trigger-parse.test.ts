import { describe, expect, it } from 'vitest';
import { attachUsage } from '../../../src/commands/attach/options.ts';
import { parseCommandLine } from '../../../src/commands/command-line/command-line.ts';
import { parseTriggerOptions } from '../../../src/commands/flight/trigger-options.ts';
import { parseTrigger } from '../../../src/commands/flight/trigger-parse.ts';
import { TraceError } from '../../../src/core/errors.ts';

describe('a --trigger expression', () => {
  it.each([
    ['delay>200ms', { kind: 'delay', operator: '>', limit: 0.2 }],
    ['tracewright.eventloop.delay >= 1.5s', { kind: 'delay', operator: '>=', limit: 1.5 }],
    ['rss>4GiB', { kind: 'level', metric: 'process.memory.usage', limit: 4 * 2 ** 30 }],
    ['rss > 4GB', { kind: 'level', metric: 'process.memory.usage', limit: 4e9 }],
    ['cpu>0.9', { kind: 'level', metric: 'process.cpu.utilization', limit: 0.9 }],
    ['cpu>350%', { kind: 'level', metric: 'process.cpu.utilization', limit: 3.5 }],
    ['fds>=1000', { kind: 'level', metric: 'process.unix.file_descriptor.count', limit: 1000 }],
    ['threads<2', { kind: 'level', metric: 'process.thread.count', operator: '<', limit: 2 }],
    ['exit', { kind: 'exit', expression: 'exit' }],
    ['process.memory.virtual>8GiB', { kind: 'level', dimension: 'By', limit: 8 * 2 ** 30 }],
    ['v8js.gc.duration>100ms', { kind: 'level', dimension: 's', limit: 0.1 }],
    [
      'vllm:num_requests_waiting>100',
      { kind: 'level', metric: 'vllm:num_requests_waiting', dimension: 'count', limit: 100 },
    ],
    ['__proto__>1', { kind: 'level', metric: '__proto__', dimension: 'count', limit: 1 }],
    ['vllm:kv_cache_usage_perc>90%', { kind: 'level', dimension: 'ratio', limit: 0.9 }],
    [
      'rss.growth>100MiB/min',
      { kind: 'growth', metric: 'process.memory.usage', limit: 100 * 2 ** 20, period: 60 },
    ],
    ['fds.growth>=50/s', { kind: 'growth', operator: '>=', limit: 50, period: 1 }],
    ['tracewright.process.memory.swap.growth>1GB/h', { kind: 'growth', limit: 1e9, period: 3600 }],
  ])('%s is read', (expression, parsed) => {
    expect(parseTrigger(` ${expression} `)).toMatchObject({ expression, ...parsed });
  });

  it.each([
    ['', /--trigger '': it must be a metric, one of > >= < <=, and a value/],
    ['delay', /it must be a metric/],
    ['delay>', /nothing follows >/],
    ['delay>200', /no unit came, and this is a time, so us, ms, s, min, h or d must follow/],
    ['delay>4GiB', /'GiB' came, and this is a time/],
    ['delay<200ms', /a delay is compared by > or >=, not by </],
    ['delay.growth>1s/min', /a delay does not grow/],
    ['rss>4', /no unit came, and this is a size, so B, KiB, MiB, GiB/],
    ['rss>+10%', /a sign came \('\+'\), and nothing here is relative/],
    ['cpu>5ms', /'ms' came, and this is a share/],
    ['rss.growth>100MiB', /'MiB' came, and growth is by time: \/s, \/min or \/h must follow/],
    ['rss.growth>100MiB/day', /'MiB\/day' came, and growth is by time/],
    ['rss.growth<1MiB/min', /growth is compared by > or >=, not by </],
    ['v8js.gc.duration.growth>1s/min', /a distribution does not grow/],
    ['exit>0', /exit stands alone/],
    ['delya>200ms', /nothing is called 'delya'; was delay meant\? There are delay, rss, cpu, fds/],
    ['memory>1GiB', /nothing is called 'memory'/],
    ['process.memory.usge>1GiB', /was process\.memory\.usage meant\?/],
    ['\u001b[31m>1', /'\\x1b\[31m'/],
    ['vllm:x>1parsec', /'parsec' came/],
  ])('%s is refused, and what came is named', (expression, message) => {
    expect(() => parseTrigger(expression)).toThrow(TraceError);
    expect(() => parseTrigger(expression)).toThrow(message);
  });
});

describe('the flags of the flight recorder', () => {
  const options = (line: string) =>
    parseTriggerOptions(parseCommandLine(attachUsage, ['7', ...line.split(' ')]).values);

  it('write the minute around an event, ten times at most', () => {
    expect(options('--trigger delay>200ms --trigger exit')).toMatchObject({
      conditions: [{ kind: 'delay' }, { kind: 'exit' }],
      before: 30,
      after: 30,
      most: 10,
      cooldown: 0,
    });
  });

  it('take other stretches, another number and a pause', () => {
    const line =
      '--trigger exit --trigger-before 2m --trigger-after=5 --trigger-max 3 --trigger-cooldown 1h';
    expect(options(line)).toMatchObject({ before: 120, after: 5, most: 3, cooldown: 3600 });
  });

  it.each([
    ['--trigger-max 3', '--trigger-max says how a --trigger is recorded, and there is none'],
    ['--trigger exit --no-recording', '--trigger and --no-recording contradict each other'],
    ['--trigger exit --force', '--trigger and --force contradict'],
    ['--trigger exit --raw', '--trigger and --raw contradict'],
    ['--trigger exit --trigger-max 0', '--trigger-max takes a number from 1'],
    ['--trigger exit --trigger-after 0s', '--trigger-after takes between 1s and 600s'],
    ['--trigger exit --trigger-before 1h', '--trigger-before takes between 0ms and 600s'],
  ])('%s is refused', (line, message) => {
    expect(() => options(line)).toThrow(message);
  });
});
