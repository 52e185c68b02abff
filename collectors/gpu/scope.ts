/** Which GPUs are the target's: those that its processes have contexts on; where the list of processes does not tell, those that CUDA shows to it. */

/** A GPU by all that it may be named by. */
export interface GpuIdentity {
  readonly key: string;
  readonly index: number | null;
  readonly uuid: string | null;
  readonly name: string | null;
  /** UUIDs of its MIG slices, with the instance each is. */
  readonly slices: readonly { readonly uuid: string; readonly key: string }[];
}

/** How `CUDA_VISIBLE_DEVICES` reads for these GPUs. */
export type Visible =
  /** Keys of GPUs, and of MIG slices where these were named. */
  | { readonly known: true; readonly keys: ReadonlySet<string> }
  | { readonly known: false; readonly why: string };

/**
 * CUDA reads a list of indices, UUIDs (each may be cut as long as it is unambiguous) or MIG UUIDs up to the first that names nothing. Its indices are
 * those of nvidia-smi only where all GPUs are of one model: by default CUDA puts the fastest first. `sameView`: the target sees the GPUs we see.
 */
export function resolveVisible(
  value: string,
  gpus: readonly GpuIdentity[],
  sameView: boolean,
): Visible {
  const keys = new Set<string>();
  for (const entry of value.split(',').map((one) => one.trim())) {
    if (/^\d+$/.test(entry)) {
      if (!sameView) return { known: false, why: 'its numbers are those of another container' };
      if (new Set(gpus.map(({ name }) => name)).size > 1)
        return { known: false, why: 'CUDA may number GPUs of different models in another order' };
      const gpu = gpus.find(({ index }) => index === Number(entry));
      if (gpu === undefined) break;
      keys.add(gpu.key);
      continue;
    }
    const named = byUuid(entry, gpus);
    if (named === null) break;
    keys.add(named);
  }
  return { known: true, keys };
}

function byUuid(entry: string, gpus: readonly GpuIdentity[]): string | null {
  if (!/^(?:GPU|MIG)-[\w/-]+$/.test(entry)) return null;
  // Before driver 470: MIG-GPU-<uuid>/<gpu instance>/<compute instance>.
  const old = /^MIG-(GPU-[\w-]+)\/(\d+)\/(\d+)$/.exec(entry);
  if (old !== null) {
    const parent = gpus.find(({ uuid }) => uuid === old[1]);
    const key = `${parent?.key} ${old[2]}/${old[3]}`;
    return parent?.slices.some((slice) => slice.key === key) === true ? key : null;
  }
  const all = gpus.flatMap(({ uuid, key, slices }) => [
    ...(uuid === null ? [] : [{ uuid, key }]),
    ...slices,
  ]);
  const exact = all.filter(({ uuid }) => uuid === entry);
  const hits = exact.length > 0 ? exact : all.filter(({ uuid }) => uuid.startsWith(entry));
  const [only, another] = hits;
  return only !== undefined && another === undefined ? only.key : null;
}
