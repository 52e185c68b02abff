import type { Bytes } from '../../src/core/types.ts';
import { all, childText, type Element, parseDocument } from './document.ts';
import { numberOf } from './values.ts';

/** The slices that MIG cuts a GPU into, and who is in them: the query for GPUs tells of the whole board only. */

export interface Slice {
  /** PCI address of the GPU it is a part of. */
  readonly gpu: string;
  /** Index of the MIG device on it. */
  readonly index: number;
  /** GPU instance and compute instance. */
  readonly instance: string;
  readonly used: Bytes | null;
  readonly total: Bytes | null;
}

/** A process with the slice that it runs in. */
export interface SliceProcess {
  readonly gpu: string;
  readonly instance: string;
  readonly pid: number;
  readonly memory: Bytes | null;
}

export interface Slices {
  readonly slices: readonly Slice[];
  readonly processes: readonly SliceProcess[];
}

/** As XML; and as text, for where it is not given. */
export const SLICE_QUERIES: readonly (readonly string[])[] = [['-q', '-x'], ['-q']];

/** Seven a GPU, on 16 GPUs, with room. */
const SLICE_LIMIT = 256;

/** Null for an answer that is neither the XML nor the text of `-q`. */
export function parseSlices(text: string): Slices | null {
  const root = parseDocument(text);
  if (root === null) return null;
  const gpus = all(root, 'gpu');
  return {
    slices: gpus
      .flatMap((gpu) => all(gpu, 'mig_device').flatMap((device) => sliceOf(gpu.id, device) ?? []))
      .slice(0, SLICE_LIMIT),
    processes: gpus.flatMap(processesOf),
  };
}

function sliceOf(gpu: string, device: Element): Slice | null {
  const instance = instanceOf(device);
  if (instance === null) return null;
  const memory = device.children.find(({ name }) => /(?:^|_)fb_memory_usage$/.test(name));
  return {
    gpu,
    index: wholeNumber(childText(device, ['index'])) ?? 0,
    instance,
    used: numberOf(childText(memory, ['used']), 'MiB'),
    total: numberOf(childText(memory, ['total']), 'MiB'),
  };
}

/** In XML each process is an element; in text its lines stand one after the other below `Processes`. */
function processesOf(gpu: Element): readonly SliceProcess[] {
  const found: SliceProcess[] = [];
  for (const list of all(gpu, 'processes')) {
    const groups = list.children.some(({ name }) => name === 'process_info')
      ? list.children
      : grouped(list.children);
    for (const one of groups) {
      const pid = wholeNumber(childText(one, ['pid', 'process_id']));
      const instance = instanceOf(one);
      if (pid === null || instance === null) continue;
      const detail = one.children.find(({ name }) => name === 'process_id');
      const memory =
        childText(one, ['used_memory']) ?? childText(detail, ['used_gpu_memory', 'used_memory']);
      found.push({ gpu: gpu.id, instance, pid, memory: numberOf(memory, 'MiB') });
    }
  }
  return found;
}

function grouped(lines: readonly Element[]): readonly Element[] {
  const groups: Element[] = [];
  for (const line of lines) {
    if (line.name === 'gpu_instance_id' || groups.length === 0)
      groups.push({ name: 'process_info', id: '', text: '', children: [] });
    groups.at(-1)?.children.push(line);
  }
  return groups;
}

/** `2/0`; null for a process on a GPU without slices, and for what cannot be read. */
function instanceOf(element: Element): string | null {
  const gpuInstance = wholeNumber(childText(element, ['gpu_instance_id']));
  const computeInstance = wholeNumber(childText(element, ['compute_instance_id']));
  return gpuInstance === null ? null : `${gpuInstance}/${computeInstance ?? 0}`;
}

function wholeNumber(text: string | undefined): number | null {
  return text !== undefined && /^\d{1,9}$/.test(text.trim()) ? Number(text) : null;
}

/** A GPU as `-L` lists it. */
export interface ListedGpu {
  readonly index: number;
  readonly uuid: string;
  readonly slices: readonly {
    readonly index: number;
    readonly uuid: string;
    readonly profile: string;
  }[];
}

/** `nvidia-smi -L`: the only place with the UUIDs of slices. */
export function parseList(text: string): readonly ListedGpu[] {
  const found: { index: number; uuid: string; slices: ListedGpu['slices'][number][] }[] = [];
  for (const line of text.split(/\r?\n/)) {
    const gpu = /^GPU (\d+): .*\(UUID: (GPU-[\w-]+)\)\s*$/.exec(line);
    if (gpu !== null) found.push({ index: Number(gpu[1]), uuid: gpu[2] ?? '', slices: [] });
    const slice = /^\s+MIG (\S+)\s+Device\s+(\d+): \(UUID: (MIG-[\w/-]+)\)\s*$/.exec(line);
    if (slice === null) continue;
    found
      .at(-1)
      ?.slices.push({ profile: slice[1] ?? '', index: Number(slice[2]), uuid: slice[3] ?? '' });
  }
  return found;
}
