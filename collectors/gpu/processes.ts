import type { Bytes, Ratio } from '../../src/core/types.ts';
import { CsvTable } from './table.ts';
import { numberOf, textOf } from './values.ts';

/** Which processes use which GPU, as nvidia-smi lists them. */

/** One process on one GPU. */
export interface GpuProcess {
  readonly pid: number;
  /** PCI address where it is told, else the UUID: of the whole GPU, also under MIG. */
  readonly gpu: string;
  /** Null where the driver does not tell (WDDM). */
  readonly memory: Bytes | null;
}

const BUS_ID = ['gpu_bus_id', 'pci.bus_id'];
const UUID = ['gpu_uuid', 'uuid'];
const PID = ['pid'];
const MEMORY = ['used_gpu_memory', 'used_memory'];

/** The names that a header of it may have; their names, which may be anything, are not asked for. */
const KNOWN: ReadonlySet<string> = new Set([
  'timestamp',
  'gpu_name',
  'gpu_serial',
  'process_name',
  'name',
  ...[BUS_ID, UUID, PID, MEMORY].flat(),
]);

/** For `nvidia-smi`; names that every driver of the last ten years knows. */
export const PROCESS_QUERY: readonly string[] = [
  '--query-compute-apps=gpu_bus_id,gpu_uuid,pid,used_gpu_memory',
  '--format=csv',
];

/** More contexts than MIG, MPS and a machine of 16 GPUs have. */
const PROCESS_LIMIT = 4096;

/** Null for an answer that is no list: an empty list has its header. */
export function parseProcesses(text: string): readonly GpuProcess[] | null {
  const table = new CsvTable(KNOWN);
  const found: GpuProcess[] = [];
  for (const line of text.split(/\r?\n/)) {
    const row = table.take(line);
    if (row === null || row === 'header' || found.length >= PROCESS_LIMIT) continue;
    const pid = Number(row.cell(PID));
    const gpu = textOf(row.cell(BUS_ID)) ?? textOf(row.cell(UUID));
    if (!isPid(pid) || gpu === null) continue;
    found.push({ pid, gpu, memory: numberOf(row.cell(MEMORY), 'MiB', row.unit(MEMORY)) });
  }
  return table.hasHeader ? found : null;
}

/** How much of a GPU a process used; null where it did not run, or the driver does not tell (MIG). */
export interface ProcessUse {
  readonly pid: number;
  readonly index: number;
  readonly sm: Ratio | null;
}

/** `pmon -c 1`: columns by its first header line, their units on the second; `-` is nothing. */
export function parsePmon(text: string): readonly ProcessUse[] {
  let columns: readonly string[] = [];
  const found: ProcessUse[] = [];
  for (const line of text.split(/\r?\n/)) {
    const words = line.trim().split(/\s+/);
    if (words[0]?.startsWith('#') === true) {
      const names = line.replace('#', ' ').trim().toLowerCase().split(/\s+/);
      if (names.includes('pid')) columns = names;
      continue;
    }
    const at = (name: string): string | undefined =>
      columns.includes(name) ? words[columns.indexOf(name)] : undefined;
    const [pid, index] = [Number(at('pid')), Number(at('gpu'))];
    if (!isPid(pid) || !Number.isInteger(index) || found.length >= PROCESS_LIMIT) continue;
    found.push({ pid, index, sm: numberOf(at('sm'), '%') });
  }
  return found;
}

function isPid(value: number): boolean {
  return Number.isInteger(value) && value > 0;
}
