import type { ExponentialHistogram } from '../../core/exponential-histogram.ts';
import type { RequestError } from '../../core/load-types.ts';
import type { Seconds } from '../../core/types.ts';
import type { EngineBatch, RequestSource, Wire } from '../contracts.ts';
import type { LoadPlan } from '../plan.ts';
import { isSampled, requestSpanId, traceparentOf } from '../trace-context.ts';
import type { Alarm, Alarms } from './alarms.ts';
import type { SharedCells } from './cells.ts';
import { Users } from './closed-loop.ts';
import { loopOf } from './loop.ts';
import { RecordPack } from './record-pack.ts';
import { ServerClock } from './server-clock.ts';
import { Slot, type SlotOwner } from './slot.ts';
import { type DueRequest, type Loop, type Sender, StageRun } from './stage-run.ts';
import { type Prepare, Supply } from './supply.ts';
import { warmupOf } from './workload.ts';

export interface DriverParts {
  readonly plan: LoadPlan;
  readonly worker: number;
  readonly workers: number;
  readonly wire: Wire;
  readonly source: RequestSource;
  readonly alarms: Alarms;
  readonly cells: SharedCells;
  /** Unix time of a CLOCK_MONOTONIC reading, minus that. */
  readonly wallOffset: Seconds;
  readonly report: (event: DriverEvent) => void;
}

/** A stage in this worker: measured from now on, sends nothing new any more, has nothing under way. */
export type DriverEvent =
  | { readonly what: 'begun' | 'drained'; readonly stage: number; readonly at: Seconds }
  | {
      readonly what: 'sending-ended';
      readonly stage: number;
      readonly at: Seconds;
      /** The first unit after the stage's, where the schedule tells. */
      readonly endUnit: number | null;
      /** Units that this worker claimed and has not sent. */
      readonly held: number;
    };

/** Sends the requests of one worker, stage by stage, and measures them. */
export class Driver implements Sender {
  inFlight = 0;
  readonly records: RecordPack = new RecordPack();
  readonly serverClock: ServerClock;
  readonly #parts: DriverParts;
  readonly #users: Users;
  readonly #claimed: Supply;
  readonly #slots: Slot[] = [];
  readonly #free: Slot[] = [];
  readonly #runs = new Map<number, { readonly stage: StageRun; readonly loop: Loop }>();
  readonly #drainAlarms = new Map<number, Alarm>();
  #stage = 0;
  #integratedTo: Seconds = 0;
  #isStopped = false;

  constructor(parts: DriverParts) {
    this.#parts = parts;
    this.serverClock = new ServerClock(parts.wallOffset);
    this.#users = new Users(parts.worker, parts.workers);
    this.#claimed = new Supply(this.#prepare, parts.plan.prompts.turns, () => parts.cells.claim());
  }

  /** The stage that began last. */
  get stage(): number {
    return this.#stage;
  }

  /** Stages that are not drained. */
  get isIdle(): boolean {
    return this.#runs.size === 0;
  }

  /** Makes the first request of a closed loop ready, before there is hurry. */
  prepare(): void {
    if (this.#parts.plan.stages[0]?.arrival.kind === 'closed') this.#claimed.peek();
  }

  /** Begins a stage at `startsAt`; `firstUnit` is the first request (or conversation) of one whose schedule says when. */
  begin(index: number, startsAt: Seconds, firstUnit: number): void {
    const { plan, alarms } = this.#parts;
    const stagePlan = plan.stages[index];
    if (stagePlan === undefined) throw new RangeError(`there is no stage ${index}`);
    const stage = new StageRun({
      index,
      plan: stagePlan,
      startsAt,
      warmup: warmupOf(plan, index),
      isStreaming: plan.body.stream,
    });
    const loop = loopOf(stage, firstUnit, {
      ...this.#parts,
      sender: this,
      prepare: this.#prepare,
      users: this.#users,
      claimed: this.#claimed,
    });
    this.#runs.set(index, { stage, loop });
    const begin = () => this.#start(stage, loop);
    if (startsAt <= alarms.now()) begin();
    else alarms.set(startsAt, begin);
  }

  /** Sends nothing new and lets what is under way end, for as long as the plan says. */
  stop(): void {
    this.#isStopped = true;
    const now = this.#parts.alarms.now();
    for (const { stage, loop } of this.#runs.values()) {
      loop.close();
      loop.abandon();
      this.endSending(stage, now);
      this.#checkDrained(stage);
    }
  }

  /** Ends what is under way. */
  abort(): void {
    this.stop();
    for (const { stage } of this.#runs.values()) this.#expire(stage, ENDED);
  }

  /** What each stage that is not drained has measured since the last call; see {@link Tally.take}. */
  *takeStages<H>(
    drain: (histogram: ExponentialHistogram) => H,
  ): Iterable<EngineBatch<H>['stages'][number]> {
    this.#integrate(this.#parts.alarms.now());
    for (const { stage } of this.#runs.values()) yield stage.tally.take(stage.index, drain);
  }

  send(stage: StageRun, owner: SlotOwner, due: DueRequest): void {
    const { alarms, wire } = this.#parts;
    const now = alarms.now();
    this.#integrate(now);
    this.inFlight++;
    stage.inFlight++;
    stage.lastSentAt = now;
    const slot = this.#take();
    const { request, bytes, scheduledAt, readyAt, warmup } = due;
    slot.begin({
      stage,
      owner,
      request,
      warmup,
      scheduledAt,
      readyAt,
      dispatchedAt: now,
    });
    wire.send(bytes, slot);
  }

  giveUp(
    stage: StageRun,
    { request, scheduledAt, warmup }: Omit<DueRequest, 'readyAt' | 'bytes'>,
  ): void {
    const now = this.#parts.alarms.now();
    const slot = this.#take();
    slot.begin({
      stage,
      owner: NOBODY,
      request,
      warmup,
      scheduledAt,
      readyAt: now,
      dispatchedAt: now,
    });
    // As the wire does with what it sends.
    slot.clear();
    slot.startedAt = slot.sentAt = slot.endedAt = now;
    slot.error = NEVER_SENT;
    this.records.add(slot);
    this.#release(slot);
  }

  measure(stage: StageRun, from: Seconds): void {
    stage.windowFrom = from;
    this.#parts.report({ what: 'begun', stage: stage.index, at: from });
  }

  endSending(stage: StageRun, at: Seconds): void {
    const run = this.#runs.get(stage.index);
    if (run === undefined || stage.phase !== 'sending') return;
    const { alarms, plan, report } = this.#parts;
    this.#integrate(alarms.now());
    stage.phase = 'draining';
    stage.windowTo = at;
    run.loop.close();
    report({
      what: 'sending-ended',
      stage: stage.index,
      at,
      endUnit: run.loop.endUnit,
      held: run.loop.endUnit === null ? this.#claimed.held : 0,
    });
    this.#drainAlarms.set(
      stage.index,
      alarms.setAbout(alarms.now() + plan.drain, () => {
        run.loop.abandon();
        this.#expire(stage, STILL_RUNNING);
        this.#checkDrained(stage);
      }),
    );
    this.#checkDrained(stage);
  }

  #start(stage: StageRun, loop: Loop): void {
    const { alarms } = this.#parts;
    if (stage.phase !== 'sending' || this.#isStopped) return;
    this.#stage = stage.index;
    if (stage.lead > 0) {
      const from = stage.startsAt + stage.lead;
      alarms.setAbout(from, () => {
        if (stage.phase === 'sending') this.measure(stage, from);
      });
    } else if (stage.warmupRequests === 0) this.measure(stage, stage.startsAt);
    // An open loop ends itself, at the end of its schedule.
    if (stage.plan.arrival.kind === 'closed' && stage.plan.duration !== null) {
      const to = stage.startsAt + stage.lead + stage.plan.duration;
      alarms.setAbout(to, () => this.endSending(stage, to));
    }
    loop.begin();
  }

  #take(): Slot {
    const free = this.#free.pop();
    if (free !== undefined) return free;
    const slot = new Slot((ended) => this.#ended(ended));
    this.#slots.push(slot);
    return slot;
  }

  #release(slot: Slot): void {
    slot.stage = null;
    slot.request = null;
    slot.owner = null;
    slot.text = '';
    this.#free.push(slot);
  }

  #ended(slot: Slot): void {
    const { stage, request, owner } = slot;
    if (stage === null || request === null) return;
    const { source, alarms } = this.#parts;
    this.#integrate(alarms.now());
    this.inFlight--;
    if (source.wantsAnswers && slot.error === null)
      slot.error = source.answered(request, slot.text);
    // What follows is sent before this one is looked at.
    owner?.ended(slot);
    this.records.add(slot);
    if (!slot.warmup) {
      stage.tally.sent(slot);
      if (slot.error === null) stage.tally.succeeded(slot);
    }
    this.serverClock.observe(slot);
    // Only now: a stage that has drained has handed over all of its requests.
    stage.inFlight--;
    this.#release(slot);
    this.#checkDrained(stage);
  }

  #checkDrained(stage: StageRun): void {
    const run = this.#runs.get(stage.index);
    if (run === undefined || stage.phase !== 'draining') return;
    if (stage.inFlight > 0 || run.loop.waiting > 0) return;
    stage.phase = 'drained';
    this.#drainAlarms.get(stage.index)?.cancel();
    const at = Math.max(this.#parts.alarms.now(), stage.windowTo);
    this.#parts.report({ what: 'drained', stage: stage.index, at });
    this.#runs.delete(stage.index);
  }

  #expire(stage: StageRun, error: RequestError): void {
    for (const slot of this.#slots) {
      if (slot.stage === stage) this.#parts.wire.abort(slot, error);
    }
  }

  /** Adds what was under way since the last change to the stages whose window is open. */
  #integrate(now: Seconds): void {
    const since = this.#integratedTo;
    if (now <= since) return;
    this.#integratedTo = now;
    for (const { stage } of this.#runs.values()) {
      const during = Math.min(now, stage.windowTo) - Math.max(since, stage.windowFrom);
      if (during > 0) stage.tally.inFlight(this.inFlight, during);
    }
  }

  readonly #prepare: Prepare = (index) => {
    const { source, wire } = this.#parts;
    const request = source.prepare(index);
    if (request === null) return null;
    const bytes = wire.frame(request.body, this.#traceparent(index));
    return { request: { ...request, body: NO_BODY }, bytes };
  };

  #traceparent(index: number): string | null {
    const { trace, part } = this.#parts.plan;
    if (trace === null) return null;
    const spanId = requestSpanId(trace.traceId, part.index, index);
    return traceparentOf(trace.traceId, spanId, isSampled(index, trace.sample));
  }
}

const NO_BODY = Buffer.alloc(0);
const NOBODY: SlotOwner = { ended: () => undefined };

function unfinished(detail: string): RequestError {
  return { class: 'unfinished', status: null, detail, retryAfter: null };
}
const STILL_RUNNING = unfinished('still running when the drain time was over');
const ENDED = unfinished('still running when the run was ended');
const NEVER_SENT = unfinished('never sent: it waited for a place under the limit of concurrency');
