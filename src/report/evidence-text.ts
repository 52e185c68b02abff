import type { Evidence, Seconds } from '../core/types.ts';
import { formatInterval, formatOffset, formatSeconds } from '../core/units.ts';
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

/** `3.21 s after the start: 820–846 ms, on a core 3 ms, in read (19 of 20 samples)`. */
function turnLine(turn: Fields, startedAt: Seconds): string[] {
  const at = number(turn, 'at_unix_s');
  const [low, high] = [number(turn, 'duration_min_s'), number(turn, 'duration_max_s')];
  if (at === null || low === null || high === null) return [];
  const onCpu = number(turn, 'on_cpu_s');
  const waited = number(turn, 'run_queue_wait_s');
  return [
    `  ${formatOffset(at - startedAt)} after the start: ${formatInterval(low, high)}` +
      (onCpu === null ? '' : `, on a core ${formatSeconds(onCpu)}`) +
      (waited === null || waited < low / 10 ? '' : `, waiting for one ${formatSeconds(waited)}`) +
      callText(text(turn, 'syscall')) +
      (turn['open'] === true ? ', still going at the end' : ''),
  ];
}

/** The system call most samples were in, from `read=19 running=1` (as `tracewright.block.syscall` has it). */
function callText(counts: string): string {
  const calls = [...counts.matchAll(/(\S+)=(\d{1,9})/g)].map(([, name = '', seen = '']) => ({
    name,
    seen: Number(seen),
  }));
  const total = calls.reduce((sum, call) => sum + call.seen, 0);
  const [most] = calls.sort((a, b) => b.seen - a.seen);
  if (most === undefined) return '';
  const where = most.name === 'running' ? 'running' : `in ${outside(most.name, 40)}`;
  return `, ${where} (${most.seen} of ${total} samples)`;
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
