import { setTimeout as sleep } from 'node:timers/promises';
import type { Clock, Gap, Observation, ObserveContext, Seconds } from '../../src/core/types.ts';
import { uptime } from '../../src/platform/proc.ts';
import type { Catalog, Discovery } from './catalog.ts';
import type { Devices } from './devices.ts';
import { type Fault, faultEvent, kernelFaults } from './faults.ts';
import type { Feed } from './feed.ts';
import type { GpuLimits } from './limits.ts';
import { parsePmon, parseProcesses, PROCESS_QUERY } from './processes.ts';
import { parseSlices, SLICE_QUERIES } from './slices.ts';
import type { Smi } from './smi.ts';
import { readStream, type StreamEnd } from './stream.ts';

/** Reading GPUs for as long as a run lasts, whatever becomes of nvidia-smi meanwhile. */

export const NAME = 'gpu';
/** A run that ends this long after the last line has not seen its end. */
const LATE_AFTER: Seconds = 3;
/** How far back before a run the kernel's log is looked at: a GPU that fell off the bus is what one attaches for. */
const LOOK_BACK: Seconds = 600;
/** Different messages about GPUs. */
const FAULTS_KEPT = 32;

export interface RunParts {
  readonly smi: Smi;
  readonly devices: Devices;
  readonly limits: GpuLimits;
  readonly feed: Feed<Observation>;
  readonly context: ObserveContext;
  readonly catalog: Catalog | null;
  readonly failure: Extract<Discovery, { ok: false }> | null;
  readonly discover: () => Promise<Discovery>;
}

/** One run: the stream and its successors, and the questions beside it. */
export class GpuRun {
  readonly #parts: RunParts;
  readonly #clock: Clock;
  readonly #signal: AbortSignal;
  readonly #faults = new Map<string, number>();
  #catalog: Catalog | null;
  #missing: { readonly from: Seconds; readonly detail: string } | null = null;
  #lastRow: Seconds;
  #nonsense = 0;
  readonly #began: Seconds;

  constructor(parts: RunParts) {
    this.#parts = parts;
    this.#clock = parts.context.clock;
    this.#signal = parts.context.signal;
    this.#catalog = parts.catalog;
    this.#began = this.#clock.now();
    this.#lastRow = this.#began;
  }

  async go(): Promise<void> {
    const begin = uptime();
    const { failure } = this.#parts;
    if (failure !== null) this.#miss(failure);
    if (failure?.fault) this.#sayFault(failure.fault);
    this.#sayKernelFaults(begin - LOOK_BACK);
    await Promise.all([this.#keepReading(), this.#keepAsking()]);
    this.#sayKernelFaults(begin);
    const to = this.#clock.now();
    const isLate = this.#missing === null && to - this.#lastRow > LATE_AFTER;
    if (isLate) this.#miss({ why: 'nvidia-smi printed nothing any more' });
    this.#closeGap(to);
    if (this.#nonsense > 0) {
      const detail = `${this.#nonsense} lines of nvidia-smi that could not be read`;
      this.#push([{ kind: 'gap', from: to, to, collector: NAME, reason: 'dropped', detail }]);
    }
  }

  /** One stream after the other, until the run is over. */
  async #keepReading(): Promise<void> {
    const { smi, limits } = this.#parts;
    let wait = limits.backOff;
    while (!this.#signal.aborted) {
      const from = this.#clock.mono();
      const end = await this.#readOnce();
      if (end === null) continue;
      if (end.refused !== null) continue;
      this.#miss(end);
      if (end.rows > 0 && this.#clock.mono() - from > limits.longestBackOff) wait = limits.backOff;
      await this.#pause(wait);
      wait = Math.min(limits.longestBackOff, wait * 2);
      // One that is still there was not helped by another.
      while (smi.isStuck && !this.#signal.aborted) await this.#pause(limits.backOff);
    }
  }

  /** Null when it ended because the run is over, or was only found out what there is. */
  async #readOnce(): Promise<StreamEnd | null> {
    const { smi, limits } = this.#parts;
    if (this.#catalog === null) {
      const found = await this.#parts.discover();
      if (found.ok) this.#catalog = found.catalog;
      else if (found.fault !== null) this.#sayFault(found.fault);
      const nothing = { isHung: true, refused: null, rows: 0 };
      return found.ok ? null : { ...nothing, why: found.why };
    }
    const { fields } = this.#catalog;
    const end = await readStream(smi, fields, {
      limits,
      clock: this.#clock,
      signal: this.#signal,
      reader: {
        onReading: (reading, isFirst) => {
          const at = this.#clock.now();
          this.#closeGap(at);
          this.#lastRow = at;
          const isWakeUp = isFirst && reading.isPersistent === false;
          this.#push(this.#parts.devices.ofReading(reading, at, isWakeUp));
        },
        onFault: (fault) => this.#sayFault(fault),
        onNonsense: () => this.#nonsense++,
      },
    });
    if (end !== null && end.refused !== null)
      this.#catalog = { ...this.#catalog, fields: fields.filter((one) => one !== end.refused) };
    // Another driver may be there when it comes back: it is asked what it knows.
    else if (end !== null && end.rows === 0) this.#catalog = null;
    return end;
  }

  /** The list of processes, and less often what needs more; never while the stream is in trouble. */
  async #keepAsking(): Promise<void> {
    const { limits, devices } = this.#parts;
    let detailsDue = 0;
    while (!this.#signal.aborted) {
      const now = this.#clock.mono();
      if (this.#isWell()) {
        // First, or the slices that processes are in are not known.
        if (now >= detailsDue) {
          detailsDue = now + limits.details;
          await this.#askDetails();
        }
        const list = await this.#ask(PROCESS_QUERY);
        const processes = list === null ? null : parseProcesses(list);
        if (processes !== null) this.#push(devices.ofProcesses(processes, this.#clock.now()));
        await this.#pause(limits.processes - (this.#clock.mono() - now));
      } else await this.#pause(limits.every);
    }
  }

  async #askDetails(): Promise<void> {
    const { devices } = this.#parts;
    if (devices.all.some(({ hasMig }) => hasMig)) {
      for (const query of SLICE_QUERIES) {
        const text = await this.#ask(query);
        const slices = text === null ? null : parseSlices(text);
        if (slices === null) continue;
        this.#push(devices.ofSlices(slices, this.#clock.now()));
        break;
      }
    }
    // Under MIG it has dashes only.
    if (devices.shown.every(({ hasMig }) => hasMig)) return;
    const uses = await this.#ask(['pmon', '-c', '1']);
    if (uses !== null) this.#push(devices.ofUses(parsePmon(uses), this.#clock.now()));
  }

  /** Null where it did not answer; what hangs here is seen by the stream too. */
  async #ask(args: readonly string[]): Promise<string | null> {
    if (!this.#isWell()) return null;
    const answer = await this.#parts.smi.ask(args, this.#parts.limits.answer);
    return answer.kind === 'answer' && !this.#signal.aborted ? answer.text : null;
  }

  #isWell(): boolean {
    const { smi, limits } = this.#parts;
    const isFresh = this.#clock.now() - this.#lastRow < limits.silence;
    return isFresh && this.#missing === null && !smi.isStuck && this.#catalog !== null;
  }

  #sayFault(fault: Fault, at: Seconds = this.#clock.now()): void {
    const name = `${fault.fault} ${fault.busId} ${fault.xid}`;
    const count = this.#faults.get(name) ?? 0;
    if (count > 0 || this.#faults.size >= FAULTS_KEPT) return;
    this.#faults.set(name, count + 1);
    const about = this.#parts.devices.attributesOf(fault.busId);
    this.#push([faultEvent(fault, at, about)]);
  }

  #sayKernelFaults(since: Seconds): void {
    const [now, up] = [this.#clock.now(), uptime()];
    // What was before the run is said at its beginning.
    for (const fault of kernelFaults(since))
      this.#sayFault(fault, Math.max(this.#began, Math.min(now, now - (up - fault.uptime))));
  }

  #miss({ why }: { readonly why: string }): void {
    this.#missing ??= { from: this.#lastRow, detail: why };
  }

  #closeGap(to: Seconds): void {
    if (this.#missing === null) return;
    const { from, detail } = this.#missing;
    this.#missing = null;
    const gap: Gap = { kind: 'gap', from, to, collector: NAME, reason: 'failed', detail };
    this.#push([gap]);
  }

  #push(observations: Iterable<Observation>): void {
    this.#parts.feed.push(observations);
  }

  async #pause(seconds: Seconds): Promise<void> {
    const time = Math.max(0, seconds) * 1e3;
    await sleep(time, undefined, { signal: this.#signal }).catch(() => {});
  }
}
