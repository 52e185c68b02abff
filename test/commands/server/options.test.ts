import { describe, expect, it } from 'vitest';
import { parseServerOptions } from '../../../src/commands/server/options.ts';

describe('what a server says of itself', () => {
  it('is looked for once a second where it is a known one, and nothing is sent to it', () => {
    expect(parseServerOptions({})).toEqual({
      metrics: { url: null, find: 'known', every: 1 },
      probe: null,
      postgres: { url: null, log: null },
    });
  });

  it('is taken from where it is said to be, of any program, or of none', () => {
    expect(parseServerOptions({ 'metrics-url': 'http://h:1/m', 'metrics-interval': '5' })).toEqual({
      metrics: { url: 'http://h:1/m', find: 'known', every: 5 },
      probe: null,
      postgres: { url: null, log: null },
    });
    expect(parseServerOptions({ metrics: true }).metrics.find).toBe('any');
    expect(parseServerOptions({ 'no-metrics': true }).metrics.find).toBe('never');
  });

  it('is asked of a database where its URL is given, which no message repeats', () => {
    const url = 'postgresql://me:pw@db/app';
    const options = { 'postgres-url': url, 'postgres-log': 'pg.log' };
    expect(parseServerOptions(options).postgres).toEqual({ url, log: 'pg.log' });
    for (const local of ['postgres://', 'postgres:///app?host=/run/postgresql'])
      expect(parseServerOptions({ 'postgres-url': local }).postgres.url).toBe(local);
    for (const wrong of ['me:pw@db/app', 'mysql://me:pw@db', 'postgres://me:pw@db:x:y/'])
      expect(() => parseServerOptions({ 'postgres-url': wrong })).toThrow(
        /^--postgres-url(?:(?!pw@).)*$/,
      );
  });

  it('is probed every 5 s, or as often as is said', () => {
    expect(parseServerOptions({ 'probe-url': 'h:1' }).probe).toEqual({ url: 'h:1', every: 5 });
    expect(parseServerOptions({ 'probe-url': 'h:1', 'probe-interval': '1m' }).probe?.every).toBe(
      60,
    );
  });

  it.each([
    [{ 'metrics-url': 'nowhere' }, /--metrics-url/],
    [{ 'no-metrics': true, metrics: true }, /--no-metrics and --metrics contradict/],
    [{ 'no-metrics': true, 'metrics-url': 'http://h' }, /--no-metrics and --metrics-url/],
    [{ 'metrics-interval': '10ms' }, /--metrics-interval/],
    [{ 'probe-interval': '5s' }, /--probe-interval needs --probe-url/],
    [{ 'probe-url': 'h', 'probe-interval': '0.5s' }, /--probe-interval/],
  ])('refuses %j', (values, message) => {
    expect(() => parseServerOptions(values)).toThrow(message);
  });
});
