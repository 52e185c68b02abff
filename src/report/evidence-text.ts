import type { Evidence, Seconds } from '../core/types.ts';
import { formatInterval, formatSeconds } from './format.ts';
import { clipEnd, clipStart, displayWidth, outside } from './layout.ts';

/** Frames shown of a stack; the innermost ones say what was running, the JSON document has the rest. */
const FRAMES_SHOWN = 8;
/** Turns listed one by one. */
const TURNS_SHOWN = 3;

/**
 * One piece of evidence as lines of at most `width` columns where they can be cut without loss of meaning: its sentence, then what
 * its data hold of the kinds known here. Data may come from a recording, so every field is checked.
 */
export function evidenceLines(evidence: Evidence, startedAt: Seconds, width: number): string[] {
  return [outside(evidence.summary, 600), ...detailLines(evidence, startedAt, width)];
}

function detailLines(evidence: Evidence, startedAt: Seconds, width: number): string[] {
  if (evidence.kind === 'turns') {
    const turns = records(evidence.data?.['worst']).slice(0, TURNS_SHOWN);
    return turns.flatMap((turn) => turnLine(turn, startedAt));
  }
  if (evidence.kind === 'stack') {
    const frames = records(evidence.data?.['frames']);
    const shown = frames.slice(0, FRAMES_SHOWN).map((frame) => `  ${frameText(frame, width - 2)}`);
    const rest = frames.length - shown.length;
    return rest > 0 ? [...shown, `  … ${rest} more`] : shown;
  }
  return [];
}

/** `at 3.21 s: 820–846 ms, 3 ms of it on a core, in read`. */
function turnLine(turn: Fields, startedAt: Seconds): string[] {
  const at = number(turn, 'at_unix_s');
  const [low, high] = [number(turn, 'duration_min_s'), number(turn, 'duration_max_s')];
  if (at === null || low === null || high === null) return [];
  const onCpu = number(turn, 'on_cpu_s');
  const waited = number(turn, 'run_queue_wait_s');
  const syscall = turn['syscall'];
  return [
    `  ${(at - startedAt).toFixed(2)} s after the start: ${formatInterval(low, high)}` +
      (onCpu === null ? '' : `, on a core ${formatSeconds(onCpu)}`) +
      (waited === null || waited < low / 10 ? '' : `, waiting for one ${formatSeconds(waited)}`) +
      (typeof syscall === 'string' ? `, in ${outside(syscall, 60)}` : '') +
      (turn['open'] === true ? ', still going at the end' : ''),
  ];
}

function frameText(frame: Fields, width: number): string {
  const name = clipEnd(outside(text(frame, 'function'), 120), Math.floor(width / 2));
  const line = number(frame, 'line');
  const place = `${outside(text(frame, 'file'), 1000)}${line === null ? '' : `:${line}`}`;
  return `${name} (${clipStart(place, Math.max(8, width - displayWidth(name) - 3))})`;
}

type Fields = Readonly<Record<string, unknown>>;

function records(value: unknown): Fields[] {
  return Array.isArray(value) ? value.filter(isFields) : [];
}

function isFields(value: unknown): value is Fields {
  return typeof value === 'object' && value !== null;
}

function number(fields: Fields, key: string): number | null {
  const value = fields[key];
  return typeof value === 'number' && Number.isFinite(value) ? value : null;
}

function text(fields: Fields, key: string): string {
  const value = fields[key];
  return typeof value === 'string' ? value : '?';
}
