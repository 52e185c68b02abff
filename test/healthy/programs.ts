import { mkdtempSync, readFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { createInterface } from 'node:readline';
import type { Seconds } from '../../src/core/types.ts';
import type { Recipe } from '../bugbench/cases.ts';
import { environmentOf } from '../bugbench/environments.ts';
import { parseReport, type ReportDocument, runCli } from '../e2e/cli.ts';
import { startGroup } from '../process-group.ts';
import { startCompletions, startLlama } from '../servers/servers.ts';

/* Programs as people run them, pinned, busy and healthy, each with one planted block of 60 ms now and then. */

const FOLDER = join(import.meta.dirname, 'programs');
const READY_TIMEOUT_MS = 90_000;
/** Of a program beyond the watch. */
const SLACK: Seconds = 20;

export const LOADS = ['idle', 'loaded'] as const;
export type Load = (typeof LOADS)[number];

/** A program and how it is run; `recipe` null is llama.cpp's server (test/servers). */
export interface Program {
  readonly name: string;
  readonly file: string;
  readonly recipe: Recipe | null;
  /** Whether it has an event loop that a block can be planted in. */
  readonly plants: boolean;
}

const PYTHON = '3.11';
const python = (file: string, ...packages: string[]): Program => ({
  name: file.replace('.py', ''),
  file,
  recipe: { kind: 'python', version: PYTHON, packages },
  plants: true,
});
const node = (file: string, ...packages: string[]): Program => ({
  name: file.replace('.mjs', ''),
  file,
  recipe: { kind: 'node', packages, flags: [] },
  plants: true,
});

export const PROGRAMS: readonly Program[] = [
  python('fastapi_sessions.py', 'fastapi==0.115.6', 'uvicorn==0.34.0', 'itsdangerous==2.2.0'),
  node('express_sessions.mjs', 'express@4.21.2', 'express-session@1.18.1'),
  python('key_value_server.py'),
  node('worker_pool.mjs', 'piscina@4.8.0'),
  python('django_sessions.py', 'django==5.1.4', 'uvicorn==0.34.0'),
  node('fastify_cache.mjs', 'fastify@5.2.0', 'lru-cache@11.0.2'),
  python('aiohttp_cache.py', 'aiohttp==3.11.11'),
  { ...python('training_loop.py', 'numpy==2.2.1'), plants: false },
  python('database_proxy.py'),
  // It runs its cells on its loop.
  python('notebook_kernel.py', 'ipykernel==6.29.5', 'jupyter-client==8.6.3'),
  { name: 'llama_server', file: '', recipe: null, plants: false },
];

/** What was said of a program; survives JSON. */
export interface Watched {
  readonly name: string;
  readonly load: Load;
  readonly watchS: Seconds;
  /** Whether a planted block was found and put down to its function; null where none was planted. */
  readonly planted: boolean | null;
  /** Every other finding above `note`, in words. */
  readonly wrong: readonly string[];
  /** The same, whole. */
  readonly wrongFindings: ReportDocument['findings'];
  /** How much of the time something that could run waited for a core, 0 to 1, by the kernel; null where it does not say. */
  readonly cpuPressure: number | null;
}

interface Started {
  readonly pid: number;
  stop(): Promise<void>;
}

/** Runs a program and attaches to it. */
export async function watchProgram(
  program: Program,
  load: Load,
  times: { readonly watchS: Seconds; readonly plantEvery: Seconds },
): Promise<Watched> {
  const { watchS } = times;
  const started =
    program.recipe === null
      ? await startLlamaWith(load, watchS)
      : await start(program, [String(watchS + SLACK), load, String(times.plantEvery)]);
  try {
    const inspect = program.recipe?.kind === 'node' ? ['--inspect'] : [];
    const args = ['attach', String(started.pid), '-d', String(watchS), '--json', '--no-recording'];
    const before = cpuPressureTotal();
    const began = performance.now();
    const run = await runCli([...args, ...inspect], { limitS: watchS + 120 });
    const after = cpuPressureTotal();
    const verdicts = parseReport(run).findings.filter(({ severity }) => severity !== 'note');
    const most = watchS / times.plantEvery + 1;
    // Where a busy machine let nobody read stacks, as many blocks as were planted, of nobody, are those.
    const isPlanted = ({ kind, where, measure }: (typeof verdicts)[number]): boolean =>
      kind === 'loop-blocked' &&
      (where.some((place) => /planted_?block/i.test(place.function)) ||
        (where.length === 0 && (measure['count'] ?? 0) <= most));
    const wrongFindings = verdicts.filter((finding) => !isPlanted(finding));
    return {
      name: program.name,
      load,
      watchS,
      planted: program.plants ? verdicts.some(isPlanted) : null,
      wrong: wrongFindings.map(({ code, kind, summary }) => `${code} ${kind}: ${summary}`),
      wrongFindings,
      cpuPressure:
        before === null || after === null
          ? null
          : (after - before) / 1e3 / (performance.now() - began),
    };
  } finally {
    await started.stop();
  }
}

/** Microseconds in which something waited for a core, since boot; null on a kernel that does not count them. */
function cpuPressureTotal(): number | null {
  try {
    return Number(/^some .*total=(\d+)/.exec(readFileSync('/proc/pressure/cpu', 'utf8'))?.[1]);
  } catch {
    return null;
  }
}

async function startLlamaWith(load: Load, seconds: Seconds): Promise<Started> {
  const server = await startLlama(0, seconds + 120);
  const clients =
    load === 'loaded' ? await startCompletions(server.port, { clients: 4, seconds }) : undefined;
  const stop = async (): Promise<void> => {
    await clients?.stop();
    await server.stop();
  };
  return { pid: server.pid, stop };
}

async function start(program: Program, args: readonly string[]): Promise<Started> {
  if (program.recipe === null) throw new Error(`${program.name} has no recipe`);
  const { command, cwd } = await environmentOf(program.recipe);
  const where = program.recipe.kind === 'node' ? cwd : mkdtempSync(join(tmpdir(), 'healthy-'));
  const { child, stop } = startGroup(
    ['env', '-C', where, ...command, join(FOLDER, program.file), ...args],
    {
      lifetime: Number(args[0]) + 120,
      env: { PYTHONNOUSERSITE: '1', PYTHONDONTWRITEBYTECODE: '1' },
    },
  );
  let errors = '';
  child.stderr.setEncoding('utf8').on('data', (text: string) => {
    errors = (errors + text).slice(-4000);
  });
  try {
    const pid = await new Promise<number>((resolve, reject) => {
      const fail = (why: string): void => reject(new Error(`${program.name}: ${why}\n${errors}`));
      const timer = setTimeout(() => fail('not ready in time'), READY_TIMEOUT_MS);
      child.on('error', (error) => fail(error.message));
      child.on('close', (code) => fail(`ended with ${String(code)} before it was ready`));
      createInterface(child.stdout).on('line', (line) => {
        if (!line.startsWith('READY ')) return;
        clearTimeout(timer);
        resolve(Number(line.split(' ')[1]));
      });
    });
    return { pid, stop };
  } catch (error) {
    await stop();
    throw error;
  }
}
