import { readlinkSync } from 'node:fs';
import { THREAD_LOOK } from '../../../collectors/python/thread-stacks.ts';
import { TraceError } from '../../core/errors.ts';
import { EVENT, SNAPSHOT } from '../../core/semconv.ts';
import type {
  Clock,
  Collector,
  CollectorInfo,
  Event,
  Observation,
  ProcessTarget,
  Seconds,
  Snapshot,
  TargetInfo,
} from '../../core/types.ts';
import { nextMoment, untilMoment } from '../../platform/common-moment.ts';
import { ageOf, readStat } from '../../platform/proc.ts';
import { hasEnded } from '../../platform/proc-parse.ts';
import { descendantsOf, rolesOf, type TreeMember } from '../../platform/process-tree.ts';
import { type Role, roleText } from '../../platform/roles.ts';
import { targetInfo } from '../../platform/target.ts';
import { titleOf } from '../../platform/target-title.ts';
import { NodeInspector } from './inspect.ts';
import type { AttachOptions } from './options.ts';
import {
  type AttachPlan,
  pidsOf,
  probeTarget,
  pythonWatches,
  type Shared,
  workersInfo,
} from './probe.ts';
import type { AttachScreen } from './screen.ts';
import type { Environment } from '../command-line/command.ts';
import { ofProcess, type Source, sourceOf } from '../watching/watch.ts';

/** Watching further processes beside the first: the children of a server, as they come and go, and other targets of `--all`. */

/** Time between two looks at who is there. */
const LOOK_EVERY: Seconds = 1;
/** Processes watched beside the first; what is beyond it is counted and said. */
const MEMBER_LIMIT = 64;
/** Probed at the same time when a run begins: each takes some 150 ms of a core. */
const PROBED_AT_ONCE = 4;
/** A child that has not lived this long when it is seen may be a command that is run and gone: it is looked at again first. */
const SETTLED_AFTER: Seconds = 1;

/** In runs this long it is worth a process of our own to hear how a single target ends. */
const LONG_RUN: Seconds = 60;

/** A further process that is watched. */
interface Member {
  readonly plan: AttachPlan;
  /** The program when it was probed: another one later means that it ran exec. */
  readonly program: string | null;
  info: TargetInfo;
}

/** Probes one process as the first was; throws a TraceError where it cannot be attached to. */
type ProbeMember = (pid: number) => Promise<AttachPlan>;

/** The further processes of a run: those that were named, and those the targets started where they are followed. */
export async function openTree(
  first: AttachPlan,
  {
    options,
    environment,
    screen,
    shared,
  }: {
    readonly options: AttachOptions;
    readonly environment: Environment;
    readonly screen: Pick<AttachScreen, 'announceTouch'>;
    /** Its listener begins to listen where more than one process may end, the run is long, or restarts are followed. */
    readonly shared: Shared;
  },
): Promise<ProcessTreeWatch> {
  const { pid } = first.found.target;
  const { target, subprocesses, maxPause, followRestarts } = options;
  const named = target.by === 'match' && target.all !== true ? [pid] : pidsOf(target);
  const others = named.filter((other) => other !== pid);
  const follows = subprocesses ?? named.some(isServerWithChildren);
  const isLong = options.duration === null || options.duration >= LONG_RUN;
  // Who follows restarts wants to know above all why it ended.
  if (follows || others.length > 0 || isLong || followRestarts !== null) shared.exits.listen();
  const tree = new ProcessTreeWatch({
    first,
    others,
    follows,
    // --inspect was asked for the target; in its children an inspector is used only where it is open.
    probe: async (member) => {
      const target = { by: 'pid', pid: member } as const;
      const inspector = new NodeInspector({ inspect: null, maxPause }, environment, screen);
      const plan = await probeTarget(
        { ...options, target, requireStacks: false },
        inspector,
        shared,
      );
      return { ...plan, collectors: [...plan.collectors, ...(await threadStacksOf(plan))] };
    },
  });
  try {
    await tree.open();
  } catch (error) {
    await tree.close();
    throw error;
  }
  return tree;
}

/** What lays the stacks of processes side by side, where they can be read. */
function threadStacksOf(plan: AttachPlan): Promise<readonly Collector<ProcessTarget>[]> {
  const { found, runtime, python } = plan;
  return pythonWatches({ target: found.target, runtime, python }, [THREAD_LOOK]);
}

/** Servers whose work is known to be done in processes of their own. */
function isServerWithChildren(pid: number): boolean {
  const below = descendantsOf(pid);
  if (below.length === 0) return false;
  return [...rolesOf(pid, below).values()].some((role) => role !== null && role.family !== null);
}

export class ProcessTreeWatch {
  readonly #roots: number[];
  readonly #follows: boolean;
  readonly #probe: ProbeMember;
  readonly #members = new Map<number, Member>();
  /** Processes that cannot be attached to (kernel threads, other architectures, gone again), by pid and start. */
  readonly #refused = new Set<string>();
  /** Those whose process collector runs, which outlives an exec. */
  readonly #followed = new Set<string>();
  #first: Member;
  #firstStacks: readonly Collector<ProcessTarget>[] = [];
  /** Every probing beyond the first, of processes that ended or became another program by exec too: what their samplers counted counts. */
  readonly #plans: AttachPlan[] = [];
  #roles: ReadonlyMap<number, Role | null> = new Map();
  /** At the last look, those that were there and are not watched because there are too many. */
  #unfollowed = 0;

  /** `others`: watched from the beginning too. `follows`: with the descendants of all of these. */
  constructor(options: {
    readonly first: AttachPlan;
    readonly others: readonly number[];
    readonly follows: boolean;
    readonly probe: ProbeMember;
  }) {
    const { first, others } = options;
    const { pid } = first.found.target;
    this.#first = memberOf(first, null);
    this.#followed.add(identityOf(first.found.target));
    this.#roots = [pid, ...others];
    this.#follows = options.follows;
    this.#probe = options.probe;
  }

  /** Probes all that are there before the run begins. */
  async open(): Promise<void> {
    const waiting = [...this.#newcomers(0)];
    const probeNext = async (): Promise<void> => {
      for (let next = waiting.shift(); next !== undefined; next = waiting.shift()) {
        await this.#admit(next);
      }
    };
    await Promise.all(Array.from({ length: PROBED_AT_ONCE }, probeNext));
    if (this.#members.size > 0) this.#firstStacks = await threadStacksOf(this.#first.plan);
  }

  /** What each process is to the server; of the roots too. */
  roleOf(pid: number): string | null {
    return roleText(this.#roles.get(pid) ?? null);
  }

  /** The first process, then the others that are watched. */
  get targets(): readonly TargetInfo[] {
    return [this.#first, ...this.#members.values()].map(({ info }) => info);
  }

  /** What can be seen of the others; and that their children cannot, where they are not followed. */
  get infos(): readonly CollectorInfo[] {
    const unseen = this.#follows ? [] : workersInfo(this.#first.info.pid);
    return [...unseen, ...[...this.#members.values()].flatMap(({ plan }) => infosOf(plan))];
  }

  get plans(): readonly AttachPlan[] {
    return this.#plans;
  }

  /** What is watched from the beginning. */
  get sources(): readonly Source[] {
    const { target } = this.#first.plan.found;
    return [
      ...this.#firstStacks.map((collector) => sourceOf(collector, target)),
      ...[...this.#members.values()].flatMap((member) => this.#sourcesOf(member)),
    ];
  }

  /** Whether nothing of what was asked for is left. */
  isOver(): boolean {
    return this.#roots.every((pid) => {
      const stat = readStat(pid);
      return stat === null || hasEnded(stat);
    });
  }

  /** Watches one more process from the next look on, and what it starts where that is followed: what a service came back as. */
  adopt(pid: number): void {
    this.#roots.push(pid);
  }

  /** A source that looks who has come, and what they call themselves now. */
  source(add: (source: Source) => void): Source {
    const look = (clock: Clock) => this.#look(clock, add);
    return {
      name: 'processes',
      async *observe({ signal, clock }) {
        while (!signal.aborted) {
          const now = clock.mono();
          await untilMoment(nextMoment(now, LOOK_EVERY), { now, signal });
          if (!signal.aborted) yield* await look(clock);
        }
      },
    };
  }

  async close(): Promise<void> {
    await Promise.all(this.plans.map(async ({ sampler }) => sampler?.close()));
  }

  async #look(clock: Clock, add: (source: Source) => void): Promise<readonly Observation[]> {
    const seen: Observation[] = [];
    const unfollowed = this.#unfollowed;
    for (const pid of this.#newcomers(SETTLED_AFTER)) {
      const member = await this.#admit(pid);
      if (member === null) continue;
      seen.push(announcement(member, clock.now()));
      for (const source of this.#sourcesOf(member)) add(source);
    }
    if (this.#unfollowed > unfollowed) seen.push(tooMany(clock.now(), this.#unfollowed));
    if (await this.#renewFirst()) {
      seen.push(announcement(this.#first, clock.now()));
      for (const source of this.#sourcesOf(this.#first)) add(source);
    }
    for (const member of [this.#first, ...this.#members.values()]) {
      if (this.#isRenamed(member)) seen.push(announcement(member, clock.now()));
    }
    for (const [pid, member] of this.#members) {
      if (programOf(pid) === member.program) continue;
      // Gone, or running another program since exec: that one will be found as if it had just come.
      await member.plan.sampler?.close();
      this.#members.delete(pid);
    }
    return seen;
  }

  /** Whether the first process runs another program than it was probed as, and could be probed as that. */
  async #renewFirst(): Promise<boolean> {
    const { program, info } = this.#first;
    const now = programOf(info.pid);
    if (now === null || now === program) return false;
    const plan = await this.#probeAgain(info.pid);
    // Not tried again before the next exec.
    this.#first = { ...this.#first, program: now };
    if (plan === null || plan.found.target.startTicks !== info.startTicks) return false;
    if (this.#plans.includes(this.#first.plan)) await this.#first.plan.sampler?.close();
    this.#plans.push(plan);
    this.#first = memberOf(plan, this.roleOf(info.pid));
    return true;
  }

  async #probeAgain(pid: number): Promise<AttachPlan | null> {
    try {
      return await this.#probe(pid);
    } catch (error) {
      if (error instanceof TraceError) return null;
      throw error;
    }
  }

  /** Processes that are not watched yet and have lived for some time, nearest to the root first. */
  #newcomers(settled: Seconds): readonly number[] {
    const below = this.#follows ? this.#roots.flatMap((root) => descendantsOf(root)) : [];
    this.#judgeRoles(below);
    const wanted = new Set([...this.#roots.slice(1), ...below.map(({ stat }) => stat.pid)]);
    wanted.delete(this.#first.info.pid);
    const fresh: number[] = [];
    for (const pid of wanted) {
      const stat = readStat(pid);
      if (stat === null || hasEnded(stat)) continue;
      // A root was asked for; it is not one of the commands that are run and gone.
      if (ageOf(stat) < settled && !this.#roots.includes(pid)) continue;
      const isKnown = this.#members.get(pid)?.info.startTicks === stat.startTicks;
      if (!isKnown && !this.#refused.has(identityOf(stat))) fresh.push(pid);
    }
    const room = Math.max(0, MEMBER_LIMIT - this.#members.size);
    this.#unfollowed = Math.max(0, fresh.length - room);
    return fresh.slice(0, room);
  }

  #judgeRoles(below: readonly TreeMember[]): void {
    this.#roles = new Map(this.#roots.flatMap((root) => [...rolesOf(root, below)]));
    this.#first.info = { ...this.#first.info, role: this.roleOf(this.#first.info.pid) };
  }

  async #admit(pid: number): Promise<Member | null> {
    const stat = readStat(pid);
    if (stat === null) return null;
    try {
      const member = memberOf(await this.#probe(pid), this.roleOf(pid));
      this.#members.set(pid, member);
      this.#plans.push(member.plan);
      return member;
    } catch (error) {
      if (!(error instanceof TraceError)) throw error;
      this.#refused.add(identityOf(stat));
      return null;
    }
  }

  /** Programs set their title once they know what they are: vLLM's engine some seconds after its start. */
  #isRenamed(member: Member): boolean {
    const { pid, title, role } = member.info;
    const stat = readStat(pid);
    if (stat === null || hasEnded(stat) || stat.startTicks !== member.info.startTicks) return false;
    const now = { title: titleOf(pid, stat.comm), role: this.roleOf(pid) };
    // A process on its way out has no command line any more, and is then called by its name in brackets.
    if (now.title === title && now.role === role) return false;
    if (now.title.startsWith('[')) return false;
    member.info = { ...member.info, ...now };
    return true;
  }

  #sourcesOf({ plan }: Member): readonly Source[] {
    const { target } = plan.found;
    const isFollowed = this.#followed.has(identityOf(target));
    this.#followed.add(identityOf(target));
    return plan.collectors
      .filter(({ name }) => !isFollowed || name !== 'process')
      .map((collector) => ofProcess(sourceOf(collector, target), target.pid));
  }
}

function memberOf(plan: AttachPlan, role: string | null): Member {
  const info = { ...targetInfo(plan.found, plan.runtime), role };
  return { plan, program: programOf(info.pid), info };
}

/** What the recording says of a process that joined, or is called otherwise now. */
function announcement({ info, plan }: Member, at: Seconds): Snapshot {
  const collectors = infosOf(plan);
  return { kind: 'snapshot', at, of: SNAPSHOT.target, body: { ...info, collectors } };
}

function tooMany(at: Seconds, count: number): Event {
  const body = `${count} more processes are not watched: ${MEMBER_LIMIT} beside the first are`;
  return { kind: 'event', at, name: EVENT.note, severity: 'warn', body };
}

function infosOf(plan: AttachPlan): readonly CollectorInfo[] {
  return plan.infos.map((info) => ({ ...info, pid: plan.found.target.pid }));
}

function identityOf({ pid, startTicks }: { pid: number; startTicks: number }): string {
  return `${pid} ${startTicks}`;
}

/**
 * What a process runs since its last exec: the program file, and where the kernel put its stack then, which tells two runs of one file apart
 * (`poetry run`). Null where it may not be read, or the process is gone.
 */
function programOf(pid: number): string | null {
  try {
    return `${readlinkSync(`/proc/${pid}/exe`)} ${readStat(pid)?.stackStart ?? 0}`;
  } catch {
    return null;
  }
}
