import { mkdtempSync, readdirSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { setTimeout as wait } from 'node:timers/promises';
import { afterAll, describe, expect, it, type TestContext } from 'vitest';
import { startReceiver } from '../otel/receiver.ts';
import { type RunningTarget, startTarget, type TargetOptions } from '../targets/harness.ts';
import {
  type Ended,
  MAIN,
  parseReport,
  type ReportDocument,
  runCli,
  startCli,
  verdicts,
} from './cli.ts';

/* The flight recorder as it is left on beside a service: what it writes, when, and what is left of it whatever happens. */

/** Two blocks of 300 ms, about 4 s and 8 s after the attach: each is an event of its own. */
const RARE: TargetOptions = {
  kinds: ['sleep'],
  durations: [300],
  reps: 2,
  startS: 1,
  spacingMs: 3500,
  jitterMs: 0,
  seconds: 40,
};
/** A block about every second, so that an event comes soon. */
const OFTEN: TargetOptions = { ...RARE, reps: 40, spacingMs: 1000 };

const folder = mkdtempSync(join(tmpdir(), 'tracewright-flight-'));
afterAll(() => rmSync(folder, { recursive: true, force: true }));

async function running(context: TestContext, options: TargetOptions): Promise<RunningTarget> {
  const target = await startTarget('asyncio', options);
  context.onTestFinished(() => target.stop());
  return target;
}

interface EventDocument {
  readonly expression: string;
  readonly value: number | null;
  readonly pid: number | null;
  readonly detail: string | null;
  readonly recording: string | null;
  readonly findings: readonly string[];
  readonly trace_id: string;
}
interface FlightDocument extends ReportDocument {
  readonly triggers: { readonly events: readonly EventDocument[]; readonly not_written: number };
}
const flightOf = (run: Ended): FlightDocument => parseReport(run) as FlightDocument;
const show = async (path: string | null | undefined): Promise<ReportDocument> =>
  parseReport(await runCli(['show', path ?? '', '--json']));
const placeOf = (findings: ReportDocument['findings']): string | undefined =>
  findings[0]?.where[0]?.function;
const freshFolder = (): string => mkdtempSync(join(folder, 'cwd-'));

const AROUND = ['--trigger-before', '1s', '--trigger-after', '1s'];
const watching = (target: RunningTarget, ...more: readonly string[]): string[] => [
  'attach',
  String(target.pid),
  '--trigger',
  'delay>200ms',
  ...AROUND,
  '--json',
  ...more,
];

describe.concurrent('beside a service that blocks now and then', () => {
  it('writes one recording for each block, each with its place, and says so at once', async (context) => {
    const target = await running(context, RARE);
    const cwd = freshFolder();
    const run = await runCli(watching(target, '-d', '11'), { cwd });
    const { triggers, findings } = flightOf(run);
    const folders = readdirSync(join(cwd, '.tracewright'));
    expect(triggers.events.map(({ recording }) => recording)).toEqual(
      folders.map((name) => join(cwd, '.tracewright', name)),
    );
    expect(folders).toHaveLength(2);
    expect(folders[1]).toMatch(new RegExp(`^\\d{8}T\\d{6}Z-attach-${target.pid}-trigger-2$`));
    for (const { value, pid, findings: ids } of triggers.events) {
      // What it waited for a core is taken off the 300 ms; it fired from 200 on.
      expect(value).toBeGreaterThan(0.2);
      expect(pid).toBe(target.pid);
      expect(ids).toContain('F1');
    }
    expect(findings[0]?.code).toBe('TRC101');
    expect(placeOf(findings)).toBe('blocking_sleep');
    expect(run.code).toBe(1);
    expect(
      run.stderr.match(/UTC {2}delay>200ms: [\d.]+ m?s {2}→ \S+-trigger-[12]$/gm),
    ).toHaveLength(2);
    const shown = await show(triggers.events[1]?.recording);
    expect(shown).toMatchObject({ command: 'attach', interrupted: false, problems: [] });
    expect(shown.duration_s).toBeGreaterThan(1.5);
    expect(shown.duration_s).toBeLessThan(4);
    expect(placeOf(shown.findings)).toBe('blocking_sleep');
  });

  it('writes nothing beside the healthy twin', async (context) => {
    const target = await running(context, { ...RARE, healthy: true });
    const cwd = freshFolder();
    const run = await runCli(watching(target, '-d', '11'), { cwd });
    const report = flightOf(run);
    expect(verdicts(report)).toEqual([]);
    expect(run.code).toBe(0);
    // A loop that waits for a core is delayed, whoever is to blame: on a machine that full nothing can be said.
    if (report.findings.some(({ mechanism }) => mechanism === 'starved')) return;
    expect(report.triggers).toMatchObject({ events: [], not_written: 0 });
    expect(readdirSync(cwd)).toEqual([]);
    expect(run.stderr).toBe('');
  });

  it('records how the process ended', async (context) => {
    const target = await running(context, { seconds: 60 });
    const recording = join(freshFolder(), 'end');
    const args = ['attach', String(target.pid), '--trigger', 'exit', '--json', '-o', recording];
    const run = startCli(args);
    // Real time: it is watched for a while before it ends.
    await wait(3000);
    target.child.kill('SIGKILL');
    const { triggers, duration_s: duration } = flightOf(await run.ended);
    expect(triggers.events).toMatchObject([
      { expression: 'exit', value: null, recording: `${recording}-trigger-1` },
    ]);
    expect(triggers.events[0]?.detail).toContain(String(target.pid));
    expect(duration).toBeLessThan(20);
    const shown = await show(`${recording}-trigger-1`);
    expect(shown.gaps.map(({ reason }) => reason)).toContain('target-gone');
  });

  it('sends metrics all the time, and a trace for each event', async (context) => {
    const target = await running(context, RARE);
    const receiver = await startReceiver();
    context.onTestFinished(() => receiver.close());
    const run = await runCli(watching(target, '-d', '11', '--otlp-endpoint', receiver.url), {
      cwd: freshFolder(),
    });
    const { triggers, problems } = flightOf(run);
    expect(problems).toEqual([]);
    const spans = receiver.spans();
    const roots = spans.filter(({ parentSpanId }) => !parentSpanId);
    expect(roots.map(({ traceId }) => traceId)).toEqual(
      triggers.events.map(({ trace_id: id }) => id),
    );
    expect(roots).toHaveLength(2);
    for (const root of roots) {
      const children = spans.filter(({ parentSpanId }) => parentSpanId === root['spanId']);
      expect(children.map(({ name }) => name)).toContain('tracewright.eventloop.blocked');
      expect(children[0]?.['attributes']).toHaveProperty(['code.stacktrace']);
    }
    expect(receiver.metrics().map(({ name }) => name)).toContain('process.memory.usage');
  });
});

describe.concurrent('in the middle of an event', () => {
  const untilFired = async (context: TestContext, command?: readonly string[]) => {
    const target = await running(context, OFTEN);
    const recording = join(freshFolder(), 'flight');
    const run = startCli(
      watching(target, '-o', recording, '--trigger-after', '1m'),
      command === undefined ? {} : { command },
    );
    await run.said('UTC  delay>200ms');
    // Real time: some of the minute after what fired is recorded.
    await wait(3000);
    return { run, path: `${recording}-trigger-1` };
  };

  it('Ctrl-C ends the run normally, with a complete recording of what there is', async (context) => {
    const { run, path } = await untilFired(context);
    run.child.kill('SIGINT');
    const ended = await run.ended;
    expect(ended.code).toBe(1);
    expect(flightOf(ended)).toMatchObject({
      interrupted: false,
      triggers: { events: [{ recording: path, findings: expect.arrayContaining(['F1']) }] },
    });
    expect(await show(path)).toMatchObject({ interrupted: true, problems: [] });
  });

  it('kill -9 leaves what was written readable', async (context) => {
    const { run, path } = await untilFired(context);
    run.child.kill('SIGKILL');
    await run.ended;
    const shown = await show(path);
    expect(shown.problems.join()).toContain('its writer was killed');
    expect(placeOf(shown.findings)).toBe('blocking_sleep');
  });

  it('a full disk ends the recording, not the watching, and is told of', async (context) => {
    // A limit on the size of files is the full disk that needs no root.
    const limited = ['bash', '-c', 'ulimit -f 16; exec "$0" "$@"', process.execPath];
    const { run, path } = await untilFired(context, limited);
    run.child.kill('SIGINT');
    const { triggers, findings, problems } = flightOf(await run.ended);
    expect(problems.join()).toContain(`${path} stopped`);
    expect(triggers.events).toHaveLength(1);
    expect(placeOf(findings)).toBe('blocking_sleep');
    expect((await show(path)).problems.join()).toContain('its writer was killed');
  });
});

describe.concurrent('what cannot be recorded', () => {
  it.each([
    ['delya>200ms', 'was delay meant?'],
    ['delay>200', 'so us, ms, s, min, h or d must follow the number'],
    ['rss>4', 'MiB'],
  ])('a condition such as %s is said before anything is watched', async (expression, text) => {
    const run = await runCli(['attach', String(process.pid), '--trigger', expression]);
    expect(run).toMatchObject({ code: 2, stdout: '' });
    expect(run.stderr).toContain(text);
  });

  it('a folder that cannot be made is said at once', async () => {
    const path = join(MAIN, 'not-a-folder', 'x');
    const run = await runCli(['attach', String(process.pid), '--trigger', 'exit', '-o', path]);
    expect(run.code).toBe(2);
    expect(run.stderr).toContain('cannot write recordings below');
  });
});
