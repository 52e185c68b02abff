import { spawn } from 'node:child_process';
import { createHash } from 'node:crypto';
import { once } from 'node:events';
import { readFileSync } from 'node:fs';
import { type IncomingMessage, get } from 'node:http';
import { join } from 'node:path';
import { text } from 'node:stream/consumers';
import { setTimeout as sleep } from 'node:timers/promises';
import { keptFolder } from '../../environments.ts';
import { runHeard } from '../../set-up-progress.ts';

/**
 * A real Jaeger, built from source as the tool of the Go module in this folder: `go install` refuses it, because its go.mod replaces a
 * module, so ours has the same requirements and sums. 1.76.0 is the newest that the Go proxy serves; its cmd/jaeger is Jaeger 2. Its UI is
 * a placeholder (the web pages are not in the module), its API is whole.
 *
 * Built in 4.9 minutes on two cores shared with others (7.4 CPU minutes, 2026-11-22, Go 1.26.8, n = 1), one download of 1.3 GB of modules
 * included; the binary of 116 MiB is kept in the cache under the hash of go.mod and go.sum.
 */

const HERE = import.meta.dirname;
const PROGRAM = 'github.com/jaegertracing/jaeger/cmd/jaeger';
/** Six times what it took; past this something is wrong. */
export const BUILD_LIMIT_MS = 30 * 60_000;
/** It answered after 0.4 s. */
const READY_LIMIT_MS = 60_000;

/** The binary, built on first use. Without Go that is an error: a test is not skipped for it. */
export async function jaegerProgram(): Promise<string> {
  const pins = ['go.mod', 'go.sum'].map((name) => readFileSync(join(HERE, name)));
  const hash = createHash('sha256').update(Buffer.concat(pins)).digest('hex').slice(0, 12);
  const setUp = {
    what: 'Jaeger, built from source by Go',
    cost: '5 minutes and 1.3 GB of modules in the cache of Go',
  };
  const name = `jaeger-${hash}-${process.arch}`;
  const folder = await keptFolder(name, setUp, (making, listen) => {
    const build = ['build', '-v', '-trimpath', '-buildvcs=false', '-mod=readonly', '-o'];
    return runHeard('go', [...build, join(making, 'jaeger'), PROGRAM], {
      cwd: HERE,
      timeout: BUILD_LIMIT_MS,
      listen,
    });
  });
  return join(folder, 'jaeger');
}

/** A Jaeger that answers. */
export interface Jaeger {
  /** Its address; the ports are Jaeger's defaults. */
  readonly host: string;
  /** What the query port answers, as JSON. */
  query(path: string): Promise<unknown>;
  /** The HTTP status at a URL. */
  statusOf(url: string): Promise<number | undefined>;
  /** Ends it, as an operator would unless told otherwise, and waits until it is gone. */
  stop(signal?: 'SIGTERM' | 'SIGKILL'): Promise<void>;
}

/** Starts one on `host`, an address of the loopback network, with what `data` holds. */
export async function startJaeger(host: string, data: string): Promise<Jaeger> {
  const program = await jaegerProgram();
  const child = spawn(program, ['--config', join(HERE, 'jaeger.yaml')], {
    // It traces itself, to 127.0.0.1:4317, and waits for that when it is to end.
    env: {
      ...process.env,
      JAEGER_HOST: host,
      JAEGER_DATA: data,
      OTEL_TRACES_SAMPLER: 'always_off',
    },
    stdio: ['ignore', 'ignore', 'pipe'],
  });
  let said = '';
  child.stderr.setEncoding('utf8').on('data', (more: string) => {
    said = (said + more).slice(-4000);
  });
  const ended = new Promise<void>((resolve) => child.on('close', () => resolve()));
  const began = Date.now();
  while (!(await isReady(host))) {
    if (child.exitCode !== null || Date.now() - began > READY_LIMIT_MS) {
      child.kill('SIGKILL');
      throw new Error(`Jaeger does not answer on ${host}:\n${said}`);
    }
    await sleep(50);
  }
  return {
    host,
    async query(path) {
      const { body } = await ask(`http://${host}:16686${path}`);
      return JSON.parse(body) as unknown;
    },
    statusOf: async (url) => (await ask(url)).status,
    async stop(signal = 'SIGTERM') {
      child.kill(signal);
      await ended;
    },
  };
}

async function isReady(host: string): Promise<boolean> {
  try {
    return (await ask(`http://${host}:13133/status`)).status === 200;
  } catch {
    return false;
  }
}

/** On a connection of its own: one that is kept alive makes Jaeger wait for it when it is to end. */
async function ask(url: string): Promise<{ status: number | undefined; body: string }> {
  const request = get(url, { agent: false });
  const [response] = (await once(request, 'response')) as [IncomingMessage];
  return { status: response.statusCode, body: await text(response) };
}

/** A span as Jaeger shows it. */
export interface JaegerSpan {
  readonly id: string;
  readonly name: string;
  /** Empty for a root. */
  readonly parent: string;
  readonly service: string;
}

/** Servers send what they have every few seconds. */
const SPANS_LIMIT_MS = 30_000;

/** The spans of a trace, once so many of one service are there or no more come. */
export async function spansOf(
  jaeger: Jaeger,
  traceId: string,
  wanted: { readonly service: string; readonly atLeast: number },
): Promise<JaegerSpan[]> {
  type Answer = {
    data?: readonly {
      spans: readonly {
        spanID: string;
        operationName: string;
        processID: string;
        references: readonly { spanID: string }[];
      }[];
      processes: Readonly<Record<string, { serviceName: string }>>;
    }[];
  };
  const began = Date.now();
  for (;;) {
    const { data } = (await jaeger.query(`/api/traces/${traceId}`)) as Answer;
    const [trace] = data ?? [];
    const spans = (trace?.spans ?? []).map((span) => ({
      id: span.spanID,
      name: span.operationName,
      parent: span.references[0]?.spanID ?? '',
      service: trace?.processes[span.processID]?.serviceName ?? '',
    }));
    const n = spans.filter(({ service }) => service === wanted.service).length;
    if (n >= wanted.atLeast || Date.now() - began > SPANS_LIMIT_MS) return spans;
    await sleep(500);
  }
}
