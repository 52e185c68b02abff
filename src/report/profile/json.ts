import { profiledFunctions, totalWeight } from '../../core/profile-functions.ts';
import type { Frame } from '../../core/types.ts';
import { jsonText } from '../json-text.ts';
import { outside } from '../layout.ts';
import { exactJson } from './exact.ts';
import { nativeJson } from './native.ts';
import type { ProfileReport } from './report.ts';

/** Raised when a reader of the old form would misread the new one. */
const SCHEMA_VERSION = 1;
/** Functions and stacks in the document: the whole of a profile is what the other formats are for. */
const FUNCTIONS_KEPT = 500;
const STACKS_KEPT = 200;

/** The profile as one JSON document (docs/schema/profile.schema.json). */
export function renderProfileJson(report: ProfileReport): string {
  const { profile, targets, quality } = report;
  const functions = profiledFunctions(profile);
  const document = {
    schema_version: SCHEMA_VERSION,
    tool: { name: 'tracewright', version: report.toolVersion },
    command: 'profile',
    started_at: new Date(profile.startedAt * 1e3).toISOString(),
    duration_s: profile.duration,
    interrupted: report.interrupted,
    reason: report.reason,
    mode: profile.mode,
    targets: targets.map((target) => ({
      pid: target.pid,
      parent: target.parent,
      start_ticks: target.startTicks,
      runtime: target.runtime,
      runtime_version: target.runtimeVersion,
      title: outside(target.title, 400),
      role: target.role,
      cpu_s: report.cpu.get(target.pid) ?? null,
    })),
    total_s: totalWeight(profile),
    threads: profile.threads.map(({ pid, tid, name, onCpu, runQueueWait, gilWait }, index) => ({
      index,
      pid,
      tid,
      name: outside(name, 100),
      cpu_s: onCpu,
      run_queue_wait_s: runQueueWait,
      gil_wait_s: gilWait,
      seen_s: profile.entries
        .filter(({ thread }) => thread === index)
        .reduce((sum, { weight }) => sum + weight, 0),
    })),
    functions: functions.slice(0, FUNCTIONS_KEPT).map((one) => ({
      function: outside(one.function, 400),
      file: outside(one.file, 1024),
      line: one.line,
      self_s: one.self,
      total_s: one.total,
      self_ratio: one.selfRatio,
      total_ratio: one.totalRatio,
      samples: one.looks,
      threads: one.threads.slice(0, 8).map(({ thread, share }) => ({ thread, share_ratio: share })),
    })),
    functions_total: functions.length,
    stacks: profile.entries.slice(0, STACKS_KEPT).map(({ thread, stack, count, weight }) => ({
      thread,
      samples: count,
      seen_s: weight,
      frames: (profile.stacks[stack] ?? []).map((one) => frameJson(one, report.native?.files)),
    })),
    stacks_total: profile.entries.length,
    quality: {
      rounds: quality.rounds,
      late: quality.late,
      samples: quality.samples,
      partial: quality.partial,
      without_code: quality.withoutCode,
      errors: quality.errors,
      asked_rate_hz: quality.askedRate,
      rate_hz: quality.rate,
      lowered_for_ratio: quality.loweredFor,
      max_overhead_ratio: quality.maxOverhead,
    },
    overhead: { own_cpu_ratio: quality.ownCpu, target_paused_s: quality.targetPaused },
    exact: report.exact === null ? null : exactJson(report.exact),
    native: report.native === null ? null : nativeJson(report.native),
    recording: report.recording === null ? null : outside(report.recording.path, 4096),
    notes: report.notes.map((note) => outside(note, 1000)),
  };
  return `${jsonText(document)}\n`;
}

function frameJson(
  { function: name, file, line }: Frame,
  nativeFiles: ReadonlySet<string> | undefined,
): object {
  const frame = { function: outside(name, 400), file: outside(file, 1024), line };
  return nativeFiles?.has(file) === true ? { ...frame, native: true } : frame;
}
