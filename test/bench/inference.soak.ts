import { mkdtempSync, readdirSync, readFileSync, rmSync, statSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { it } from 'vitest';
import { theilSen } from '../../src/core/theil-sen.ts';
import type { Seconds } from '../../src/core/types.ts';
import { parseReport, type ReportDocument, startCli } from '../e2e/cli.ts';
import { CAPTURE, FakeSmi } from '../nvidia-smi/fake-smi.ts';
import { startDynamo } from '../servers/dynamo.ts';
import { type Server, startCompletions, startLlama } from '../servers/servers.ts';
import { cpuOf, percent, publish, rowsOf, setting, table } from './measurements.ts';

/*
 * Inference servers that are healthy, watched for `TRACEWRIGHT_SOAK_S` seconds (default five minutes) under load, and one of them for twelve
 * times as long with its page and a GPU (a fake nvidia-smi): what is said of them, which must be nothing, and what trace itself takes.
 */

const HEALTHY_S = setting('TRACEWRIGHT_SOAK_S', 300);
const LONG_S = 12 * HEALTHY_S;
const READ_EVERY_S = 10;
const MIB = 2 ** 20;
/** The first quarter is start-up: compiled code, filled pools, the first recording's buffers. */
const WARM = 0.25;
/** Servers and clients outlive the run by this; a machine may stand still for minutes. */
const SPARE: Seconds = 600;
const LIMIT_MS = (LONG_S + 2 * SPARE) * 1e3;

interface Reading {
  /** Seconds since the start. */
  readonly at: Seconds;
  readonly rss: number;
}

interface Row {
  readonly name: string;
  readonly duration: Seconds;
  readonly findings: readonly string[];
  readonly pages: number;
  readonly tokens: number;
  readonly gaps: number;
  readonly cpu: number;
  readonly disk: number;
  readonly readings: readonly Reading[];
}

interface Watch {
  readonly name: string;
  readonly server: Server;
  readonly seconds: Seconds;
  readonly load: { readonly clients: number; readonly pause: Seconds };
  readonly smi?: FakeSmi;
}

function rssOf(pid: number): number | null {
  try {
    const status = readFileSync(`/proc/${pid}/status`, 'utf8');
    const [, kilobytes] = /^VmRSS:\s+(\d+) kB/m.exec(status) ?? [];
    return kilobytes === undefined ? null : Number(kilobytes) * 1024;
  } catch {
    return null;
  }
}

async function watch({ name, server, seconds, load, smi }: Watch): Promise<Row> {
  const folder = mkdtempSync(join(tmpdir(), 'trace-soak-'));
  const clients = await startCompletions(server.port, { ...load, seconds: seconds + SPARE });
  try {
    const recording = join(folder, 'run');
    const args = ['attach', String(server.pid), '-d', `${seconds}s`, '--json', '--no-progress'];
    const gpu = smi === undefined ? [] : ['--gpu'];
    const path = smi === undefined ? {} : { PATH: `${smi.folder}:${process.env['PATH'] ?? ''}` };
    const run = startCli([...args, ...gpu, '-o', recording], {
      limitS: seconds + SPARE,
      env: path,
    });
    const readings: Reading[] = [];
    const began = performance.now();
    let isOver = false;
    let cpu = 0;
    void run.ended.finally(() => (isOver = true));
    while (!isOver) {
      const rss = rssOf(run.pid);
      if (rss === null) break;
      cpu = cpuOf(run.pid);
      readings.push({ at: (performance.now() - began) / 1e3, rss });
      await sleep(READ_EVERY_S * 1e3);
    }
    const ended = await run.ended;
    // 6: the machine stood still at times; the gaps are in the table.
    if (![0, 1, 6].includes(ended.code ?? -1)) throw new Error(`${ended.code}: ${ended.stderr}`);
    const disk = readdirSync(recording).reduce(
      (sum, one) => sum + statSync(join(recording, one)).size,
      0,
    );
    return { name, cpu, disk, readings, ...said(parseReport(ended)) };
  } finally {
    await clients.stop();
    rmSync(folder, { recursive: true, force: true });
  }
}

function said(
  report: ReportDocument,
): Pick<Row, 'duration' | 'findings' | 'pages' | 'tokens' | 'gaps'> {
  const of = (metric: string) => report.metrics[`tracewright.server.${metric}`]?.series[0];
  const loud = report.findings.filter(({ severity }) => severity !== 'note');
  return {
    duration: report.duration_s,
    findings: loud.map(({ code, confidence, summary }) => `${code} ${confidence}: ${summary}`),
    pages: of('requests.running')?.count ?? 0,
    tokens: (of('tokens.output')?.last ?? 0) - (of('tokens.output')?.first ?? 0),
    gaps: report.gaps.length,
  };
}

const SERVERS = [
  { name: 'llama.cpp', start: (lifetime: Seconds) => startLlama(0, lifetime) },
  { name: 'Dynamo, mocker', start: (lifetime: Seconds) => startDynamo({}, lifetime) },
] as const;

/** A run shorter than the default is for trying this file, and is not published. */
const say = HEALTHY_S < 300 ? (title: string, body: string) => console.log(title, body) : publish;

it('healthy inference servers are not spoken of', { timeout: LIMIT_MS }, async () => {
  const rows = await rowsOf(`inference-${HEALTHY_S}`, SERVERS.length, async (index) => {
    const { name, start } = SERVERS[index] ?? SERVERS[0];
    const server = await start(HEALTHY_S + SPARE);
    try {
      return await watch({ name, server, seconds: HEALTHY_S, load: { clients: 4, pause: 0.5 } });
    } finally {
      await server.stop();
    }
  });
  const lines = rows.map((row) => [
    row.name,
    `${row.duration.toFixed(0)} s`,
    String(row.pages),
    String(row.tokens),
    String(row.gaps),
    String(row.findings.length),
    row.findings.join('; '),
  ]);
  const head = ['server', 'watched', 'pages read', 'tokens', 'gaps', 'findings', 'which'];
  say(
    'Healthy inference servers',
    `\`trace attach\` on real servers with tiny models, four clients with half a second between their requests; findings of warning or above.\n\n${table(head, lines)}`,
  );
});

it('memory stays flat while pages and GPUs are read', { timeout: LIMIT_MS }, async () => {
  const [row] = await rowsOf(`inference-long-${LONG_S}`, 1, async () => {
    const server = await startLlama(0, LONG_S + SPARE);
    try {
      const smi = new FakeSmi({ capture: CAPTURE.h100, processes: [[server.pid, 60_000]] });
      const load = { clients: 2, pause: 2 };
      return await watch({ name: 'llama.cpp', server, seconds: LONG_S, load, smi });
    } finally {
      await server.stop();
    }
  });
  if (row === undefined) throw new Error('no run');
  const warm = row.readings.filter(({ at }) => at > row.duration * WARM);
  const slope = theilSen(
    warm.map(({ at }) => at / 3600),
    warm.map(({ rss }) => rss / MIB),
  );
  const rss = row.readings.map((reading) => reading.rss);
  const mib = (bytes: number): string => `${(bytes / MIB).toFixed(0)} MiB`;
  const at = (share: number): string => mib(rss[Math.floor(share * (rss.length - 1))] ?? 0);
  say(
    'Memory, with pages and GPUs',
    `\`trace attach\` on llama.cpp for ${row.duration.toFixed(0)} s with its page (${row.pages} read) and a GPU from a fake nvidia-smi each second, two clients, a recording kept (${mib(row.disk)}). Resident memory read every ${READ_EVERY_S} s (n = ${rss.length}): after the first quarter ${slope.slope.toFixed(2)} MiB an hour (95 %: ${slope.low.toFixed(2)} to ${slope.high.toFixed(2)}). ${percent(row.cpu / row.duration, 2)} of a core. Findings of warning or above: ${row.findings.length === 0 ? 'none' : row.findings.join('; ')}.

${table(
  ['', 'start', '25 %', '50 %', '75 %', 'end', 'most'],
  [['resident', at(0), at(0.25), at(0.5), at(0.75), at(1), mib(Math.max(...rss))]],
)}`,
  );
});
