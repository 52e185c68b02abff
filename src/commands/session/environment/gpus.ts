import { existsSync } from 'node:fs';
import { discover } from '../../../../collectors/gpu/catalog.ts';
import { Smi } from '../../../../collectors/gpu/smi.ts';
import { parseList } from '../../../../collectors/gpu/slices.ts';
import type { Seconds } from '../../../core/types.ts';
import { findSmi } from '../../attach/gpu.ts';
import type { EnvironmentFact, Surroundings } from './fact.ts';

/** Each start of nvidia-smi; a driver that is loaded for it takes a second or two. */
const ASK_LIMIT: Seconds = 2;
/** All of its starts: what is not done then is ended, and holds nothing up. */
const ALL_LIMIT: Seconds = 2.5;

/** GPUs by nvidia-smi: which, how many, the driver, and whether they are cut into slices. */
export async function gpuFacts({ env }: Surroundings): Promise<readonly EnvironmentFact[]> {
  const program = findSmi({ env });
  if (program === null) {
    const reason = existsSync('/proc/driver/nvidia/version')
      ? 'NVIDIA’s driver is loaded, but nvidia-smi is not on PATH'
      : 'no nvidia-smi, and no NVIDIA driver';
    return [{ name: 'gpus', value: null, reason }];
  }
  const smi = new Smi(program);
  const timer = setTimeout(() => void smi.close(), ALL_LIMIT * 1e3);
  try {
    const found = await discover(smi, ASK_LIMIT);
    if (!found.ok) return [{ name: 'gpus', value: null, reason: found.why }];
    const { gpus } = found.catalog;
    const names = countsOf(gpus.map(({ name }) => name ?? 'unknown'));
    const sliced = gpus.filter(({ hasMig }) => hasMig).length;
    const drivers = [...new Set(gpus.map(({ driver }) => driver).filter((one) => one !== null))];
    return [
      { name: 'gpus', value: names, reason: null },
      {
        name: 'gpu_driver',
        value: drivers.length === 0 ? null : drivers.join(', '),
        reason: drivers.length === 0 ? 'nvidia-smi does not tell' : null,
      },
      {
        name: 'gpu_mig',
        value: sliced === 0 ? 'off' : `on for ${sliced} of ${gpus.length}: ${await slicesOf(smi)}`,
        reason: null,
      },
    ];
  } finally {
    clearTimeout(timer);
    await smi.close();
  }
}

async function slicesOf(smi: Smi): Promise<string> {
  const answer = await smi.ask(['-L'], ASK_LIMIT);
  const slices =
    answer.kind === 'answer' ? parseList(answer.text).flatMap((gpu) => gpu.slices) : [];
  return slices.length === 0
    ? 'no slices are listed'
    : countsOf(slices.map(({ profile }) => profile));
}

/** `8 × NVIDIA H100, 1 × NVIDIA T4`. */
function countsOf(names: readonly string[]): string {
  const counts = new Map<string, number>();
  for (const name of names) counts.set(name, (counts.get(name) ?? 0) + 1);
  return [...counts].map(([name, count]) => `${count} × ${name}`).join(', ');
}
