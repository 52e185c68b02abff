import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { startDynamo } from '../servers/dynamo.ts';
import { type Server, startCompletions, startLlama } from '../servers/servers.ts';
import { type Ended, parseReport, type ReportDocument, runCli } from './cli.ts';

/*
 * What llama.cpp and Dynamo say of themselves, found by trace on their own ports and put beside what is seen of their processes; a small request
 * now and then. Installed on first use; a section of its own in .ci/run.
 */

const WATCH_S = 12;
const CLIENTS = 4;

interface Watched {
  readonly run: Ended;
  readonly report: ReportDocument;
}

async function attachUnderLoad(server: Server): Promise<Watched> {
  const clients = await startCompletions(server.port, { clients: CLIENTS, seconds: WATCH_S + 6 });
  try {
    const probe = ['--probe-url', `http://127.0.0.1:${server.port}`, '--probe-interval', '2s'];
    const flags = ['-d', String(WATCH_S), '--json', '--no-recording', ...probe];
    const run = await runCli(['attach', String(server.pid), ...flags], { limitS: WATCH_S + 30 });
    return { run, report: parseReport(run) };
  } finally {
    await clients.stop();
  }
}

function series(report: ReportDocument, name: string): ReportDocument['metrics'][string]['series'] {
  return report.metrics[`tracewright.server.${name}`]?.series ?? [];
}

describe.each([
  { name: 'llama.cpp', start: () => startLlama(), role: 'llama.cpp server', steps: true },
  { name: "Dynamo's frontend", start: () => startDynamo(), role: 'Dynamo frontend', steps: false },
])('$name', ({ start, role, steps }) => {
  let server: Server;
  let watched: Watched;
  beforeAll(async () => {
    server = await start();
    watched = await attachUnderLoad(server);
  });
  afterAll(() => server?.stop());

  it('has its page found on its own port, and said so', () => {
    const { port } = server;
    const asked = new RegExp(
      `asked http://127.0.0.1:${port}/metrics of pid \\d+ \\(${role}\\): \\d+`,
    );
    expect(watched.run.stderr).toMatch(asked);
    expect(watched.report.collectors).toContainEqual(
      expect.objectContaining({ name: 'server-metrics', available: true }),
    );
  });

  it('says what it works on, and tokens that move', () => {
    const { report } = watched;
    expect(series(report, 'requests.running')[0]?.max).toBeGreaterThanOrEqual(CLIENTS - 1);
    expect(series(report, 'requests.waiting')).toHaveLength(1);
    const [tokens] = series(report, 'tokens.output');
    expect((tokens?.last ?? 0) - (tokens?.first ?? 0)).toBeGreaterThan(100);
    if (!steps) return;
    const [counted] = series(report, 'scheduler.steps');
    expect((counted?.last ?? 0) - (counted?.first ?? 0)).toBeGreaterThan(100);
  });

  it('answers probes, whose times are on the same axis', () => {
    const [ttft] = series(watched.report, 'probe.time_to_first_token');
    const [e2e] = series(watched.report, 'probe.duration');
    expect(ttft?.count).toBeGreaterThanOrEqual(3);
    expect(ttft?.min).toBeGreaterThan(0);
    expect(e2e?.min).toBeGreaterThanOrEqual(ttft?.min ?? 0);
  });

  it('is healthy, and nothing is found', () => {
    const loud = watched.report.findings.filter(({ severity }) => severity !== 'note');
    expect(loud).toEqual([]);
    expect(watched.run.code).toBe(0);
  });
});
