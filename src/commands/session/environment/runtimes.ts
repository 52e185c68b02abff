import { readFile } from 'node:fs/promises';
import { dirname } from 'node:path';
import { findProgram } from '../../../platform/find-program.ts';
import {
  findInterpreters,
  type Interpreter,
  NODE_NAME,
  PYTHON_NAME,
} from '../../../platform/programs.ts';
import {
  behindShim,
  packagesIn,
  pythonEnvironment,
  type PythonPackage,
} from '../../../platform/python-packages.ts';
import type { EnvironmentFact, Surroundings } from './fact.ts';

/** What an inference stack is made of, by the names of their packages, and how the others call them. */
const PACKAGES: ReadonlyMap<string, string> = new Map([
  ['torch', 'torch'],
  ['transformers', 'transformers'],
  ['vllm', 'vllm'],
  ['sglang', 'sglang'],
  ['tensorrt_llm', 'tensorrt_llm'],
  ['ai_dynamo', 'dynamo'],
  ['ai_dynamo_runtime', 'dynamo runtime'],
  ['nixl', 'nixl'],
  ['triton', 'triton'],
  ['flashinfer_python', 'flashinfer'],
]);
const CUDA = /^nvidia_cuda_runtime(?:_cu\d+)?$/;
const CUDA_PACKAGES = [
  'nvidia_cuda_runtime',
  'nvidia_cuda_runtime_cu11',
  'nvidia_cuda_runtime_cu12',
  'nvidia_cuda_runtime_cu13',
];

/** The Python that a shell here would start, its packages, CUDA and Node. */
export async function runtimeFacts({
  cwd,
  env,
}: Surroundings): Promise<readonly EnvironmentFact[]> {
  const path = env['PATH'];
  const called = findProgram('python', path) ?? findProgram('python3', path);
  const program = called === null ? null : behindShim(called, { cwd, env });
  const [pythons, nodes] = await Promise.all([
    program === null ? [] : findInterpreters(PYTHON_NAME, dirname(program)),
    findInterpreters(NODE_NAME, path),
  ]);
  const node = nodes[0];
  const nodeFact: EnvironmentFact = {
    name: 'node',
    value: node === undefined ? null : `${node.version} ${node.path}`,
    reason: node === undefined ? 'none on PATH' : null,
  };
  if (program === null) {
    const reason = 'no python on PATH';
    return [{ name: 'python', value: null, reason }, await cudaFact([]), nodeFact];
  }
  const { kind, prefix, folders } = pythonEnvironment(program);
  const names = new Set([...PACKAGES.keys(), ...CUDA_PACKAGES]);
  const packages = packagesIn(folders, names);
  const shown = packages.filter(({ name }) => PACKAGES.has(name));
  return [
    {
      name: 'python',
      value: `${versionOf(program, pythons)} ${program} (${kind}, ${prefix})`,
      reason: null,
    },
    {
      name: 'packages',
      value:
        shown.length === 0
          ? null
          : shown.map(({ name, version }) => `${PACKAGES.get(name)} ${version}`).join(', '),
      reason: shown.length === 0 ? `none of ${[...PACKAGES.values()].join(', ')} in it` : null,
    },
    await cudaFact(packages),
    nodeFact,
  ];
}

/** One that says nothing else is called `python` or `python3` in its folder. */
function versionOf(program: string, pythons: readonly Interpreter[]): string {
  const known = pythons.find(({ path }) => path === program) ?? pythons[0];
  return known?.version ?? 'of unknown version,';
}

/** The toolkit of the machine, and the runtime that the packages bring. */
async function cudaFact(packages: readonly PythonPackage[]): Promise<EnvironmentFact> {
  const text = await readFile('/usr/local/cuda/version.json', 'utf8').catch(() => '');
  const toolkit = /"cuda"\s*:\s*\{[^{}]{0,200}"version"\s*:\s*"([\d.]{1,20})"/.exec(
    text.slice(0, 65_536),
  )?.[1];
  const runtime = packages.find(({ name }) => CUDA.test(name))?.version;
  const torch = packages.find(({ name }) => name === 'torch');
  const build = /\+cu(\d{2,3})$/.exec(torch?.version ?? '')?.[1];
  const value = [
    ...(toolkit === undefined ? [] : [`toolkit ${toolkit}`]),
    ...(runtime === undefined ? [] : [`runtime ${runtime} of its package`]),
    ...(build === undefined ? [] : [`torch built for ${build.slice(0, -1)}.${build.slice(-1)}`]),
  ].join(', ');
  return {
    name: 'cuda',
    value: value === '' ? null : value,
    reason: value === '' ? 'neither a toolkit in /usr/local/cuda nor a runtime package' : null,
  };
}
