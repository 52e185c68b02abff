import { describe, expect, it } from 'vitest';
import {
  attachUsage,
  parseAttachOptions,
  type AttachDefaults,
  type AttachOptions,
} from '../../../src/commands/attach/options.ts';
import { parseCommandLine } from '../../../src/commands/command-line/command-line.ts';

function options(line: string, defaults?: AttachDefaults): AttachOptions {
  const { values, positionals } = parseCommandLine(attachUsage, line.split(' ').filter(Boolean));
  return parseAttachOptions(values, positionals, defaults);
}

describe('trace attach', () => {
  it('watches for ten seconds, from 50 ms on, keeps a recording, and sends nothing', () => {
    expect(options('4312')).toEqual({
      target: { by: 'pid', pid: 4312 },
      gpu: null,
      duration: 10,
      lagThreshold: 0.05,
      trigger: null,
      server: {
        metrics: { url: null, find: 'known', every: 1 },
        probe: null,
        postgres: { url: null, log: null },
      },
      recording: { enabled: true, path: null, parent: null, overwrite: false, raw: false },
      otlp: { enabled: false, endpoint: null, protocol: null, traceUrl: null },
      format: 'text',
      inspect: null,
      maxPause: null,
      subprocesses: null,
      followRestarts: null,
      requireStacks: false,
      exitZero: false,
      progress: true,
      quiet: false,
      verbose: false,
      noColor: false,
    });
  });

  it('waits a minute for a restart where it is to follow them, and then watches on', () => {
    expect(options('7 --follow-restarts')).toMatchObject({ followRestarts: 60, duration: null });
    expect(options('7 --follow-restarts=5m -d 1h')).toMatchObject({
      followRestarts: 300,
      duration: 3600,
    });
    expect(options('7 --follow-restarts', { duration: 20 }).duration).toBeNull();
    expect(() => options('7 8 --follow-restarts')).toThrow('several targets');
    expect(() => options('--match x --all --follow-restarts')).toThrow('several targets');
    expect(() => options('7 --follow-restarts=0')).toThrow('between 1s and 24h');
  });

  it('takes its target by position, by flag or by title, or lists', () => {
    expect(options('-p 7').target).toEqual({ by: 'pid', pid: 7 });
    expect(options('--pid=7 7').target).toEqual({ by: 'pid', pid: 7 });
    expect(options('--match uvicorn').target).toEqual({ by: 'match', pattern: 'uvicorn' });
    expect(options('').target).toEqual({ by: 'list' });
  });

  it('takes several targets by their pids, or all that match', () => {
    expect(options('7 8 -p 9 -p 7').target).toEqual({ by: 'pid', pid: 7, others: [8, 9] });
    expect(options('--match x --all').target).toEqual({ by: 'match', pattern: 'x', all: true });
    expect(() => options('7 --all')).toThrow('--all needs --match');
    expect(() => options('7 --match x')).toThrow('pid 7 and --match contradict each other');
    expect(() => options('--match=')).toThrow('--match needs a pattern');
  });

  it('follows children where it is told to, or where the target is known to have some', () => {
    expect(options('7').subprocesses).toBeNull();
    expect(options('7 --subprocesses').subprocesses).toBe(true);
    expect(options('7 --no-subprocesses').subprocesses).toBe(false);
    expect(() => options('7 --subprocesses --no-subprocesses')).toThrow('contradict each other');
  });

  it('keeps a recording below a size', () => {
    expect(options('7 --max-size 1GiB').recording.maxSize).toBe(2 ** 30);
    expect(() => options('7 --max-size 1MiB')).toThrow('a size from 16MiB to 1024GiB');
    expect(() => options('7 --max-size 1GiB --no-recording')).toThrow('contradict');
  });

  it('opens an inspector only when asked to, with or without a value', () => {
    expect(options('--inspect 7')).toMatchObject({
      inspect: 'open',
      target: { by: 'pid', pid: 7 },
    });
    expect(options('7 --inspect=force').inspect).toBe('force');
    expect(() => options('7 --inspect=maybe')).toThrow('--inspect takes open or force');
    expect(() => options('7 --inspect --max-pause 0')).toThrow('contradict each other');
  });

  it('goes on until Ctrl-C when it waits for an event, whatever is configured', () => {
    expect(options('7 --trigger delay>200ms', { duration: 5 })).toMatchObject({
      duration: null,
      lagThreshold: 0.05,
      trigger: { conditions: [{ expression: 'delay>200ms' }] },
    });
    expect(options('7 --trigger exit -d 1h', { duration: 5 }).duration).toBe(3600);
  });

  it('looks for delays as short as the shortest that it waits for', () => {
    expect(options('7 --trigger delay>200ms --trigger delay>20ms').lagThreshold).toBe(0.02);
    expect(() => options('7 --trigger delay>20ms --lag-threshold 30ms')).toThrow(
      "--trigger 'delay>20ms' and --lag-threshold 30ms contradict each other",
    );
    expect(() => options('7 --trigger delay>2ms')).toThrow('a delay is seen from 5ms on');
  });

  it('goes on until Ctrl-C for 0 and inf', () => {
    expect(options('7 -d 0').duration).toBeNull();
    expect(options('7 --duration inf').duration).toBeNull();
    expect(options('7 -d 2m').duration).toBe(120);
    expect(() => options('7 -d 10ms')).toThrow('between 1s and 576h');
  });

  it('reads a bare lag threshold as milliseconds', () => {
    expect(options('7 --lag-threshold 20').lagThreshold).toBeCloseTo(0.02, 12);
    expect(options('7 --lag-threshold 0.05s').lagThreshold).toBeCloseTo(0.05, 12);
    expect(() => options('7 --lag-threshold 1')).toThrow('between 5ms and 10s');
  });

  it('takes --json for --format json, and not both ways', () => {
    expect(options('7 --json').format).toBe('json');
    expect(options('7 -f json --json').format).toBe('json');
    expect(() => options('7 -f text --json')).toThrow('contradict');
    expect(() => options('7 -f yaml')).toThrow("takes text or json, got 'yaml'");
  });

  it('exports when an endpoint is named or --otel asks for it', () => {
    expect(options('7 --otel').otlp).toMatchObject({ enabled: true, endpoint: null });
    expect(options('7 --otlp-endpoint http://h:4318').otlp).toMatchObject({
      enabled: true,
      endpoint: 'http://h:4318',
    });
    expect(() => options('7 --otlp-endpoint h:4318')).toThrow('takes a URL');
  });

  it('exports by a protocol of OpenTelemetry when one is named', () => {
    expect(options('7 --otlp-protocol grpc').otlp).toMatchObject({
      enabled: true,
      protocol: 'grpc',
    });
    expect(() => options('7 --otlp-protocol udp')).toThrow(
      "takes grpc or http/protobuf or http/json, got 'udp'",
    );
  });

  it('refuses to keep nothing and to say where', () => {
    for (const flag of ['-o x', '--raw', '--force']) {
      expect(() => options(`7 --no-recording ${flag}`)).toThrow('contradict');
    }
  });

  it('lets a flag win over the configuration, and the configuration over the default', () => {
    const configured = { duration: null, lagThreshold: 0.1, otlpEndpoint: 'http://c:4318' };
    expect(options('7', configured)).toMatchObject({
      duration: null,
      lagThreshold: 0.1,
      otlp: { enabled: true, endpoint: 'http://c:4318' },
    });
    expect(
      options('7 -d 5 --lag-threshold 20 --otlp-endpoint http://f:4318', configured),
    ).toMatchObject({ duration: 5, lagThreshold: 0.02, otlp: { endpoint: 'http://f:4318' } });
  });

  it('holds the configuration to the bounds of the flags', () => {
    expect(() => options('7', { lagThreshold: 0.001 })).toThrow(
      "the configured lag_threshold takes between 5ms and 10s, got '1ms'",
    );
    expect(() => options('7', { duration: 0.5 })).toThrow('the configured duration takes between');
    expect(options('7', { duration: 90, output: '/var/traces' })).toMatchObject({
      duration: 90,
      recording: { path: null, parent: '/var/traces' },
    });
  });

  it('shows no status line when it is quiet', () => {
    expect(options('7 -q')).toMatchObject({ quiet: true, progress: false });
    expect(options('7 --no-progress')).toMatchObject({ quiet: false, progress: false });
  });
});
