import { existsSync } from 'node:fs';
import { OFFSET_TABLES } from '../../../collectors/python/offset-tables.ts';
import { type Check, passed } from '../../core/check.ts';
import type { Seconds } from '../../core/types.ts';
import { formatSeconds } from '../../core/units.ts';
import { displayUrl, otlpConfig } from '../../otel/environment.ts';
import { findProgram } from '../../platform/find-program.ts';
import {
  findInterpreters,
  type Interpreter,
  NODE_NAME,
  PYTHON_NAME,
} from '../../platform/programs.ts';
import { runBriefly } from '../../platform/run-briefly.ts';
import { tryConnect } from '../../platform/try-connect.ts';
import type { Environment } from '../command-line/command.ts';

/** The programs and services that trace meets here. All are asked at once, and none for longer than its limit. */
export async function programChecks(
  env: Environment['env'],
  configuredEndpoint: string | undefined,
): Promise<readonly Check[]> {
  const path = env['PATH'];
  const [pythons, nodes, gpu, otlp] = await Promise.all([
    findInterpreters(PYTHON_NAME, path),
    findInterpreters(NODE_NAME, path),
    gpuCheck(path),
    otlpCheck(env, configuredEndpoint),
  ]);
  return [
    interpreterCheck('python', pythons, isReadablePython, pythonRange()),
    interpreterCheck('node', nodes, isReadableNode, `Node ${OLDEST_NODE} and later`),
    gpu,
    otlp,
  ];
}

/** The loop of older ones is laid out differently (docs/attach.md). */
const OLDEST_NODE = 20;

/** Whether event loop and stacks of that CPython can be read; a pre-release or free-threaded one cannot. */
export function isReadablePython(version: string): boolean {
  const match = /^3\.(\d+)\.\d+(?:rc\d+)?\+?$/.exec(version);
  return match !== null && OFFSET_TABLES.some(({ minor }) => minor === Number(match[1]));
}

export function isReadableNode(version: string): boolean {
  return Number.parseInt(version, 10) >= OLDEST_NODE;
}

function pythonRange(): string {
  return `CPython 3.${OFFSET_TABLES[0]?.minor} to 3.${OFFSET_TABLES.at(-1)?.minor}`;
}

function interpreterCheck(
  name: string,
  found: readonly Interpreter[],
  isReadable: (version: string) => boolean,
  range: string,
): Check {
  if (found.length === 0) {
    // What is watched brings its own runtime: one on PATH is only a sign of what may run here.
    return passed(name, 'none on PATH; what runs by another path can be watched all the same');
  }
  const strange = found.filter(({ version }) => version === null || !isReadable(version));
  const detail = found
    .map((one) => `${one.version} ${one.path}${strange.includes(one) ? ' (not supported)' : ''}`)
    .join(', ');
  if (strange.length === 0) return passed(name, detail);
  return {
    name,
    status: strange.length === found.length ? 'missing' : 'limited',
    detail,
    remedy: `run servers with ${range}; of others, loop blocks and stacks are not seen`,
  };
}

/** A driver that hangs is itself worth knowing. */
const GPU_LIMIT: Seconds = 2;

async function gpuCheck(path: string | undefined): Promise<Check> {
  const program = findProgram('nvidia-smi', path);
  const hasDriver = existsSync('/proc/driver/nvidia/version');
  if (program === null) {
    return hasDriver
      ? {
          name: 'nvidia-smi',
          status: 'missing',
          detail: "NVIDIA's driver is loaded, but nvidia-smi is not on PATH",
          remedy:
            "install the nvidia-utils package of the driver's version; in a container, set NVIDIA_DRIVER_CAPABILITIES=utility",
        }
      : passed('nvidia-smi', 'not on PATH, and no NVIDIA driver is loaded: no such GPU to watch');
  }
  const run = await runBriefly(
    program,
    ['--query-gpu=name,driver_version', '--format=csv,noheader'],
    GPU_LIMIT,
  );
  if (run.ended === 'exit' && run.code === 0) {
    const gpus = run.output.trim().split('\n').filter(Boolean);
    return passed(
      'nvidia-smi',
      `${program} answers: ${gpus.length} GPUs (${gpus.slice(0, 8).join('; ')})`,
    );
  }
  const why =
    run.ended === 'timeout'
      ? `did not answer in ${formatSeconds(GPU_LIMIT)} and was killed`
      : run.ended === 'exit'
        ? `ended with ${run.code}: ${run.output.trim().split('\n')[0] ?? ''}`
        : `could not be started: ${run.reason}`;
  return {
    name: 'nvidia-smi',
    status: 'limited',
    detail: `${program} ${why}`,
    remedy: 'sudo dmesg | grep -i -e nvrm -e xid  # what the driver says',
  };
}

/** A backend on the same network answers a connection in milliseconds. */
const CONNECT_LIMIT: Seconds = 1;
const DEFAULT_ENDPOINT = 'http://localhost:4318';
const SET_ENDPOINT = `export OTEL_EXPORTER_OTLP_ENDPOINT=${DEFAULT_ENDPOINT}`;

async function otlpCheck(env: Environment['env'], configured: string | undefined): Promise<Check> {
  let config: ReturnType<typeof otlpConfig>;
  try {
    config = otlpConfig({ env, endpoint: configured });
  } catch (error) {
    // A setting that cannot be meant: attach would end with exactly this.
    const remedy = error instanceof Error && 'remedy' in error ? error.remedy : null;
    return otlpLimited(
      error instanceof Error ? error.message : String(error),
      typeof remedy === 'string' ? remedy : SET_ENDPOINT,
    );
  }
  const target = config && (config.targets.traces ?? config.targets.metrics ?? config.targets.logs);
  if (config === null || target === null)
    return passed(
      'otlp',
      `no OTEL_EXPORTER_OTLP_ENDPOINT is set: nothing is sent unless --otel asks for it (${DEFAULT_ENDPOINT})`,
    );
  const { url, protocol } = target;
  const shown = `${displayUrl(url)} (${protocol})`;
  const port = Number(url.port) || (url.protocol === 'https:' ? 443 : 80);
  const refusal = await tryConnect(url.hostname.replace(/^\[|\]$/g, ''), port, CONNECT_LIMIT);
  if (refusal !== null)
    return otlpLimited(
      `${shown} cannot be reached: ${refusal}`,
      'start the backend (docs/jaeger.md), or correct OTEL_EXPORTER_OTLP_ENDPOINT',
    );
  const [warning] = config.warnings;
  // Such as gRPC's port without its protocol.
  if (warning !== undefined)
    return otlpLimited(`${shown} takes connections, but ${warning}`, 'correct that variable');
  return passed('otlp', `${shown} takes connections (what it does with data was not tried)`);
}

function otlpLimited(detail: string, remedy: string): Check {
  return { name: 'otlp', status: 'limited', detail, remedy };
}
