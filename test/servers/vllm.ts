import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import type { Seconds } from '../../src/core/types.ts';
import { startGroup } from '../process-group.ts';
import { reported } from '../set-up-progress.ts';
import { freePort } from './dynamo.ts';
import { vllmServer } from './install.ts';
import type { Server } from './servers.ts';

/** A real vLLM on the CPU with a model of random weights: 6 GB to install, a minute to start. */

const LIFETIME: Seconds = 1_800;
/** 56 s on a quiet machine, four minutes on a busy one. */
const READY_LIMIT_MS = 600_000;
export const VLLM_MODEL = 'tiny';

/** `otlp` is where its spans go, as an OTLP/HTTP URL with path. */
export async function startVllm(otlp: string | null, asked?: number): Promise<Server> {
  const { program, model } = await vllmServer();
  const port = asked ?? (await freePort());
  const cache = mkdtempSync(join(tmpdir(), 'trace-vllm-'));
  const where = ['--host', '127.0.0.1', '--port', String(port), '--served-model-name', VLLM_MODEL];
  const size = ['--max-model-len', '2048', '--max-num-seqs', '16', '--enforce-eager'];
  const traces = otlp === null ? [] : ['--otlp-traces-endpoint', otlp];
  const flags = ['serve', model, ...where, '--dtype', 'float32', ...size, ...traces];
  const { child, ...group } = startGroup([program, ...flags], {
    lifetime: LIFETIME,
    env: { ...ENVIRONMENT, VLLM_CACHE_ROOT: cache },
  });
  let said = '';
  for (const stream of [child.stdout, child.stderr])
    stream.setEncoding('utf8').on('data', (text: string) => (said = (said + text).slice(-6_000)));
  const stop = async (): Promise<void> => {
    await group.stop();
    rmSync(cache, { recursive: true, force: true });
  };
  const began = Date.now();
  await reported({ what: 'a vLLM server starts', cost: 'a minute' }, null, async (listen) => {
    for (const stream of [child.stdout, child.stderr]) stream.on('data', listen);
    while (!(await isHealthy(port))) {
      if (child.exitCode !== null || Date.now() - began > READY_LIMIT_MS) {
        await stop();
        throw new Error(`vLLM does not answer:\n${said}`);
      }
      await sleep(500);
    }
  });
  return { pid: child.pid ?? 0, port, stop };
}

const ENVIRONMENT = {
  VLLM_TARGET_DEVICE: 'cpu',
  VLLM_CPU_KVCACHE_SPACE: '1',
  OMP_NUM_THREADS: '1',
  VLLM_HOST_IP: '127.0.0.1',
  GLOO_SOCKET_IFNAME: 'lo',
  VLLM_NO_USAGE_STATS: '1',
  DO_NOT_TRACK: '1',
  HF_HUB_OFFLINE: '1',
  OTEL_SERVICE_NAME: 'vllm',
  OTEL_EXPORTER_OTLP_TRACES_PROTOCOL: 'http/protobuf',
};

async function isHealthy(port: number): Promise<boolean> {
  try {
    return (await fetch(`http://127.0.0.1:${port}/health`)).ok;
  } catch {
    return false;
  }
}
