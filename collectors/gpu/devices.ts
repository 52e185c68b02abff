import type { Attributes, Observation, Seconds } from '../../src/core/types.ts';
import type { GpuProcess, ProcessUse } from './processes.ts';
import type { GpuReading } from './reading.ts';
import { GPU_LIMIT } from './catalog.ts';
import { busKey } from './faults.ts';
import { GpuSamples } from './samples.ts';
import { type GpuIdentity, resolveVisible } from './scope.ts';
import type { ListedGpu, Slice, Slices } from './slices.ts';

/** The GPUs there are, which of them are the target's, and what is said of them. */

/** What the target is known by. */
export interface Holder {
  /** Its processes: pids as we see them. */
  processes(): ReadonlySet<number>;
  /** `CUDA_VISIBLE_DEVICES` of those of them that have it. Untrusted. */
  visible(): readonly string[];
  /** Whether it sees the files and processes that we see. */
  readonly sameView: boolean;
}

export class Devices {
  readonly #holder: Holder;
  readonly #samples = new GpuSamples();
  readonly #gpus = new Map<string, GpuReading>();
  #listed: readonly ListedGpu[] = [];
  /** The last that were read, for which slice a process is in. */
  #slices: Slices | null = null;
  /** GPUs that the target's processes were seen on. */
  readonly #used = new Set<string>();
  /** GPUs and slices that CUDA shows to it; null where that says nothing. */
  #visible: ReadonlySet<string> | null = null;
  /** Why it says nothing. */
  #unknown = 'CUDA_VISIBLE_DEVICES is not set or may not be read';

  constructor(holder: Holder) {
    this.#holder = holder;
  }

  /** All there are. */
  get all(): readonly GpuReading[] {
    return [...this.#gpus.values()];
  }

  /** Those of the target, where it is known which they are; else all. */
  get shown(): readonly GpuReading[] {
    return this.all.filter(({ key }) => this.isShown(key));
  }

  /** Null where it is known which GPUs are the target's; else why not. */
  get unknownScope(): string | null {
    return this.#used.size > 0 || this.#visible !== null ? null : this.#unknown;
  }

  identify(gpus: readonly GpuReading[], listed: readonly ListedGpu[]): void {
    for (const gpu of gpus) if (this.#hasRoom(gpu.key)) this.#gpus.set(gpu.key, gpu);
    this.#samples.identify(this.all);
    if (listed.length > 0) this.#listed = listed;
    this.#look();
  }

  isShown(key: string): boolean {
    if (this.#used.size > 0) return this.#used.has(key);
    return (
      this.#visible === null ||
      [...this.#visible].some((one) => one === key || one.startsWith(`${key} `))
    );
  }

  attributesOf(busId: string | null): Attributes {
    const gpu = busId === null ? undefined : this.#gpus.get(busId);
    return gpu === undefined ? {} : this.#samples.attributesOf(gpu);
  }

  *ofReading(reading: GpuReading, at: Seconds, isWakeUp: boolean): Iterable<Observation> {
    if (!this.#gpus.has(reading.key)) this.identify([reading], []);
    if (!this.#gpus.has(reading.key)) return;
    if (this.isShown(reading.key)) yield* this.#samples.ofGpu(reading, at, isWakeUp);
  }

  /** Notes who is on which GPU; the samples are of the target's processes, the others are summed. */
  *ofProcesses(list: readonly GpuProcess[], at: Seconds): Iterable<Observation> {
    const own = this.#holder.processes();
    for (const { pid, gpu } of list) {
      const key = this.#keyOf(gpu);
      if (own.has(pid) && this.#gpus.has(key)) this.#used.add(key);
    }
    const others = new Map<string, number>();
    for (const { pid, gpu, memory } of list) {
      const key = this.#keyOf(gpu);
      if (!own.has(pid)) others.set(key, (others.get(key) ?? 0) + (memory ?? 0));
      else
        yield* this.#samples.ofProcess({ pid, id: this.#placeOf(key, pid), memory, use: null }, at);
    }
    for (const gpu of this.shown) {
      const memory = others.get(gpu.key);
      if (memory !== undefined && this.#used.size > 0)
        yield* this.#samples.ofOthers(gpu, memory, at);
    }
  }

  *ofUses(uses: readonly ProcessUse[], at: Seconds): Iterable<Observation> {
    const own = this.#holder.processes();
    for (const { pid, index, sm } of uses) {
      const gpu = this.all.find((one) => one.index === index);
      if (gpu === undefined || !own.has(pid) || sm === null || sm > 1) continue;
      const id = this.#samples.idOf(gpu.key);
      yield* this.#samples.ofProcess({ pid, id, memory: null, use: sm }, at);
    }
  }

  *ofSlices(slices: Slices, at: Seconds): Iterable<Observation> {
    this.#slices = slices;
    this.#look();
    for (const slice of slices.slices) {
      const gpu = this.#gpus.get(busKey(slice.gpu));
      if (gpu === undefined || !this.#isSliceShown(gpu.key, slice)) continue;
      const known = this.#listedSlice(gpu, slice);
      const { uuid = null, profile = null } = known ?? {};
      yield* this.#samples.ofSlice(slice, gpu, { uuid, profile, at });
    }
  }

  /** One that gives itself another address in each line is none. */
  #hasRoom(key: string): boolean {
    return this.#gpus.has(key) || this.#gpus.size < GPU_LIMIT;
  }

  #isSliceShown(key: string, { instance }: Slice): boolean {
    const own = this.#holder.processes();
    const seen = (this.#slices?.processes ?? []).filter(({ pid }) => own.has(pid));
    if (seen.length > 0)
      return seen.some((one) => busKey(one.gpu) === key && one.instance === instance);
    if (!this.isShown(key)) return false;
    const named = [...(this.#visible ?? [])].filter((one) => one.includes(' '));
    return named.length === 0 || named.includes(`${key} ${instance}`);
  }

  /** Where a process is: its slice under MIG, else the GPU. */
  #placeOf(key: string, pid: number): string {
    const at = this.#slices?.processes.find((one) => one.pid === pid && busKey(one.gpu) === key);
    const slice = this.#slices?.slices.find(
      (one) => at !== undefined && one.instance === at.instance && busKey(one.gpu) === key,
    );
    const gpu = this.#gpus.get(key);
    if (slice === undefined || gpu === undefined) return this.#samples.idOf(key);
    return this.#samples.sliceId(slice, gpu, this.#listedSlice(gpu, slice)?.uuid ?? null);
  }

  #listedSlice(gpu: GpuReading, slice: Slice): ListedGpu['slices'][number] | undefined {
    return this.#listed
      .find(({ index }) => index === gpu.index)
      ?.slices.find(({ index }) => index === slice.index);
  }

  /** By address, or by UUID where the list has that alone. */
  #keyOf(name: string): string {
    const key = busKey(name);
    return this.#gpus.has(key) ? key : (this.all.find(({ uuid }) => uuid === name)?.key ?? name);
  }

  /** What CUDA shows to the target. */
  #look(): void {
    const values = this.#holder.visible();
    if (values.length === 0) return;
    const gpus = this.all.map((gpu) => this.#identityOf(gpu));
    const keys = new Set<string>();
    for (const value of values) {
      const visible = resolveVisible(value, gpus, this.#holder.sameView);
      if (!visible.known) {
        this.#unknown = `of CUDA_VISIBLE_DEVICES: ${visible.why}`;
        this.#visible = null;
        return;
      }
      for (const key of visible.keys) keys.add(key);
    }
    // A list that names nothing here hides every GPU, or was resolved wrongly.
    this.#visible = keys.size === 0 ? null : keys;
    if (keys.size === 0) this.#unknown = 'what CUDA_VISIBLE_DEVICES names is not here';
  }

  #identityOf({ key, index, uuid, name }: GpuReading): GpuIdentity {
    const listed = this.#listed.find((one) => one.index === index)?.slices ?? [];
    const slices = (this.#slices?.slices ?? []).flatMap((slice) => {
      if (busKey(slice.gpu) !== key) return [];
      const id = listed.find((one) => one.index === slice.index)?.uuid;
      return [{ uuid: id ?? '', key: `${key} ${slice.instance}` }];
    });
    // Before the slices were read: the GPU that a MIG UUID is a part of.
    const early =
      slices.length > 0 ? slices : listed.map((one) => ({ uuid: one.uuid, key: `${key} ` }));
    return { key, index, uuid, name, slices: early };
  }
}
