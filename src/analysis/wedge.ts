import { percentText } from '../core/text.ts';
import type {
  Confidence,
  Detector,
  Evidence,
  Place,
  RecordingView,
  Seconds,
  UnnumberedFinding,
} from '../core/types.ts';
import { formatNumber, formatSeconds } from '../core/units.ts';
import {
  type EngineProcess,
  engineProcesses,
  frameText,
  type GpuState,
  gpuState,
  nameOf,
} from './engine-state.ts';
import { probeStall, type Stall, stallsOf, stoppedStall } from './stall.ts';
import { type Cause, causeOf } from './wedge-cause.ts';
import { suspectOf } from './wedge-suspect.ts';

/**
 * TRC201 wedge: requests are running and nothing comes out. What counts as progress is anything that a scheduler's step leaves behind: tokens,
 * finished requests, its own count of steps, a change of the KV cache. Whether it is a wedge or one long prefill is told by the engine's
 * processes and the GPU: a kernel that never returns and a lost wake-up look different, and so does one that computes.
 */

const CODE = 'TRC201';

/** Shorter silences are prefills, compilation, a page read between two steps. */
const LIKELY_AFTER: Seconds = 20;
/** A server that was silent for so long before and went on may be so again: this many times its longest gap. */
const LONGEST_GAPS = 3;
/** No step of any scheduler takes two minutes. */
const CONFIRMED_AFTER: Seconds = 120;
/** Where everything looks like computing (a GPU under power, cores that spin and no GPU to tell), only time tells. */
const COMPUTING_LIKELY_AFTER: Seconds = 120;
const COMPUTING_CONFIRMED_AFTER: Seconds = 300;

export const wedge: Detector = {
  code: CODE,
  of: 'run',
  *detect(view) {
    for (const stall of [...stallsOf(view), ...idleStall(view)]) {
      const finding = judge(stall, view);
      if (finding !== null) yield finding;
    }
  },
};

/** Where nothing runs by the server's page. */
function idleStall(view: RecordingView): readonly Stall[] {
  const stopped = stoppedStall(view);
  return stopped.length > 0 ? stopped : probeStall(view);
}

function judge(stall: Stall, view: RecordingView): UnnumberedFinding | null {
  const { lasted } = stall;
  const patience = LONGEST_GAPS * stall.longestGap;
  if (lasted < Math.max(LIKELY_AFTER, patience)) return null;
  const processes = engineProcesses(view, stall);
  const gpu = gpuState(view, stall);
  const cause = causeOf(processes, gpu);
  if (cause.mayCompute && lasted < Math.max(COMPUTING_LIKELY_AFTER, patience)) return null;
  const suspect = suspectOf(processes);
  const whom = suspect === null ? '' : `: ${suspect.why}`;
  const how = suspect?.process.stopped === true ? suspect.why : `${cause.sentence}${whom}`;
  const at = suspect === null ? [] : placesOf(suspect.process);
  return {
    code: CODE,
    kind: 'wedge',
    mechanism: (cause.mechanism === 'lost wake-up' ? suspect?.mechanism : null) ?? cause.mechanism,
    severity: 'critical',
    confidence: confidenceOf(lasted, { cause, patience }),
    pid: suspect?.process.target.pid ?? null,
    summary: `the server is wedged: ${runningText(stall)} and no progress for ${formatSeconds(lasted)}; ${how}`,
    where: at,
    evidence: [
      {
        kind: 'no-progress',
        summary: `${stall.seen} for ${formatSeconds(lasted)}, with ${runningText(stall)}${stall.waiting === null ? '' : ` and ${stall.waiting} waiting`}; before, the longest pause was ${formatSeconds(stall.longestGap)}`,
        data: { ...stall },
      },
      ...processEvidence(processes),
      ...gpuEvidence(gpu),
    ],
    measure: {
      stalled_s: lasted,
      longest_gap_s: stall.longestGap,
      running_count: stall.running,
      ...(stall.waiting === null ? {} : { waiting_count: stall.waiting }),
    },
    remedy: cause.remedy,
  };
}

function confidenceOf(
  lasted: Seconds,
  { cause, patience }: { readonly cause: Cause; readonly patience: Seconds },
): Confidence {
  const after = cause.mayCompute ? COMPUTING_CONFIRMED_AFTER : CONFIRMED_AFTER;
  return lasted >= Math.max(after, patience) ? 'confirmed' : 'likely';
}

/** Frames of the suspect that are shown as its place. */
const PLACES = 5;

function placesOf({ frames }: EngineProcess): readonly Place[] {
  return (frames ?? []).slice(0, PLACES).map(({ function: name, file, line }) => ({
    function: name,
    file,
    line,
    module: null,
    thread: 'main',
    share: 1,
  }));
}

/** Ranks compared; more are in the table of processes. */
const PROCESSES_SHOWN = 12;

const WAITS: Readonly<Record<string, string>> = {
  running: 'its main thread runs',
  lock: 'its main thread waits for a lock',
  sleep: 'its main thread sleeps',
  message: 'its main thread waits for a message',
  child: 'its main thread waits for a child',
};

function processEvidence(processes: readonly EngineProcess[]): readonly Evidence[] {
  return processes.slice(0, PROCESSES_SHOWN).map((one) => {
    const parts = [
      one.stopped ? 'stopped' : '',
      one.cpu === null ? 'CPU not read' : `${percentText(one.cpu)} of a core`,
      one.sleeps === null ? '' : `went to sleep ${formatNumber(one.sleeps)} times a second`,
      one.wait === null ? '' : (WAITS[one.wait] ?? ''),
      one.frames === null
        ? 'its stack was not read'
        : `main thread${frameText(one) || ' runs no Python'}`,
    ];
    return {
      kind: 'process',
      summary: `${nameOf(one)}: ${parts.filter((part) => part !== '').join(', ')}`,
      data: {
        pid: one.target.pid,
        role: one.target.role,
        cpu_ratio: one.cpu,
        sleeps_per_s: one.sleeps,
      },
    };
  });
}

function gpuEvidence(gpu: GpuState | null): readonly Evidence[] {
  if (gpu === null) return [];
  const power = gpu.power === null ? '' : `, at ${percentText(gpu.power)} of its power limit`;
  return [
    {
      kind: 'gpu',
      summary: `the busiest GPU was at ${percentText(gpu.utilization)}${power}`,
      data: { utilization_ratio: gpu.utilization, power_ratio: gpu.power },
    },
  ];
}

/** By the server's page, which has nothing running where what would count it stands still. */
function runningText({ running, engine }: Stall): string {
  if (running === 0) return 'nothing running by its page';
  return `${count(running, 'request')}${engine === null ? '' : ` of engine ${engine}`} running`;
}

function count(number: number, what: string): string {
  return `${number} ${what}${number === 1 ? '' : 's'}`;
}
