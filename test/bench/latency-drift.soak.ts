import { join } from 'node:path';
import { expect, it } from 'vitest';
import { parseReport, type ReportDocument, runCli } from '../e2e/cli.ts';
import { startReady } from '../targets/harness.ts';
import { setting } from './measurements.ts';

/*
 * `latency-drift` on a real server under a steady load: one that goes through all it was ever asked is told, with the growth; the same one that
 * forgets is not. On a crowded machine the client itself is late, and that is said of both instead: then this fails as not measured.
 */

const PROGRAM = join(import.meta.dirname, '..', 'targets', 'node', 'remembering.js');
/** The detector wants 30 s of requests. */
const SECONDS = Math.max(45, setting('TRACEWRIGHT_DRIFT_S', 60));

async function loaded(mode: 'remembers' | 'forgets'): Promise<ReportDocument> {
  const server = await startReady(process.execPath, [PROGRAM, mode]);
  try {
    const url = `http://127.0.0.1:${server.port}`;
    const how = ['--rate', '10', '-d', `${SECONDS}s`, '--model', 'tiny', '--trace-sample', '1'];
    const args = ['load', url, '--json', '--no-recording', ...how];
    const report = parseReport(await runCli(args, { limitS: SECONDS + 120 }));
    if (report.findings.some(({ kind }) => kind === 'client-saturated'))
      throw new Error('not measured: the client was late itself');
    return report;
  } finally {
    await server.stop();
  }
}

const drifts = ({ findings }: ReportDocument) =>
  findings.filter(({ kind }) => kind === 'latency-drift');

it('a server that goes through all it was asked is told, one that forgets is not', async () => {
  const [slower] = drifts(await loaded('remembers'));
  console.log(slower?.summary);
  expect(slower).toMatchObject({ code: 'TRC116', mechanism: 'uptime', confidence: 'likely' });
  expect(slower?.measure['growth_ratio']).toBeGreaterThan(1.25);
  expect(drifts(await loaded('forgets'))).toEqual([]);
});
