import {
  profiledFunctions,
  type ProfiledFunction,
  totalWeight,
} from '../../core/profile-functions.ts';
import type { Profile, ProfileMode } from '../../core/profile.ts';
import { rankPlaces } from '../../core/place.ts';
import type { Frame, Ratio, Seconds } from '../../core/types.ts';
import { formatCount, formatRatio, formatSeconds } from '../../core/units.ts';
import { clipEnd, clipStart, displayWidth, outside, pad } from '../layout.ts';
import { Page } from '../page.ts';
import type { Surface } from '../style.ts';
import { writeExact } from './exact.ts';
import { nativeSentence } from './native.ts';
import type { ProfileReport } from './report.ts';

/** A profile for people: the verdict, the functions, the threads, and how well it was seen. */

const COLUMN = 8;
const THREAD_WIDTH = 10;
/** Columns of a function's name beside the place that it stands at. */
const NAME_SHARE = 0.45;
const THREADS_SHOWN = 8;
/** Of a core: less is a process that waits. */
const IDLE = 0.02;

const WHAT: Readonly<Record<ProfileMode, string>> = {
  wall: 'of the time of its threads',
  cpu: 'of its time on a core',
  gil: 'of the time that the GIL was held',
  blocked: 'of the time that its event loop was blocked',
};

/** The whole page. */
export function renderProfile(report: ProfileReport, surface: Surface): string {
  const page = new Page(surface);
  page.paragraph(page.style.bold(profileVerdict(report)));
  writeTarget(page, report);
  const functions = profiledFunctions(report.profile);
  if (functions.length > 0) {
    writeFunctions(page, functions, report);
    writeThreads(page, report.profile);
  }
  if (report.exact !== null) writeExact(page, report.exact);
  writeQuality(page, report);
  return page.toString();
}

/** Where most of the time was, in a line. */
export function profileVerdict({ profile, cpu, targets, native }: ProfileReport): string {
  const pids = targets.map(({ pid }) => pid);
  const whose = pids.length === 1 ? `pid ${pids[0]}` : `${pids.length} processes`;
  const spent = [...cpu.values()].reduce((sum, one) => sum + one, 0);
  const cores = profile.duration > 0 ? spent / profile.duration : 0;
  if (totalWeight(profile) <= 0) return nothing(profile.mode, whose, cores);
  const [place] = rankPlaces(
    profile.entries.map(({ stack, weight }) => ({
      frames: withoutNative(profile.stacks[stack] ?? [], native?.files),
      weight,
    })),
    1,
  );
  if (place !== undefined)
    return (
      `${whose}: ${formatRatio(place.share)} ${WHAT[profile.mode]} was in ${nameOf(place.frame.function)}` +
      ` (${placeOf(place.frame.file, place.frame.line)}) or what it called`
    );
  const [first] = profiledFunctions(profile);
  return first === undefined
    ? nothing(profile.mode, whose, cores)
    : `${whose}: no function has half ${WHAT[profile.mode]}; most, ${formatRatio(first.selfRatio)}, was in ${nameOf(first.function)} (${placeOf(first.file, first.line)})`;
}

/** The program's own functions are to blame, not the library that they end in; of a stack that has none, the native ones. */
function withoutNative(
  frames: readonly Frame[],
  files: ReadonlySet<string> | undefined,
): readonly Frame[] {
  if (files === undefined) return frames;
  const own = frames.filter(({ file }) => !files.has(file));
  return own.length > 0 ? own : frames;
}

function nothing(mode: ProfileMode, whose: string, cores: number): string {
  if (mode === 'blocked') return `${whose}: no turn of its event loop lasted long enough`;
  if (mode === 'gil') return `${whose}: nobody was found holding the GIL`;
  if (cores < IDLE)
    return `${whose} used ${formatRatio(cores)} of a core: it waits; --mode wall shows where`;
  return `${whose}: no stack of its threads was seen`;
}

function writeTarget(
  page: Page,
  { profile, targets, quality, reason, recording }: ProfileReport,
): void {
  for (const { pid, runtime, runtimeVersion, title } of targets.slice(0, THREADS_SHOWN))
    page.row(
      page.style.dim(`pid ${pid}  ${runtime} ${runtimeVersion ?? ''}  ${outside(title, 200)}`),
    );
  if (targets.length > THREADS_SHOWN)
    page.row(page.style.dim(`and ${targets.length - THREADS_SHOWN} more processes`));
  if (recording !== null) {
    const when = new Date(profile.startedAt * 1e3).toISOString().slice(0, 19).replace('T', ' ');
    const lasted = formatSeconds(profile.duration);
    page.row(page.style.dim(`${profile.mode}, ${lasted} recorded from ${when} UTC`));
    return;
  }
  const ended =
    reason === 'target-gone' ? ', then it ended' : reason === 'interrupted' ? ', interrupted' : '';
  page.row(
    page.style.dim(
      `${profile.mode}, ${formatSeconds(profile.duration)} at ${formatRate(quality.rate)} looks a second${ended}`,
    ),
  );
}

function writeFunctions(
  page: Page,
  functions: readonly ProfiledFunction[],
  { profile, top }: ProfileReport,
): void {
  page.gap();
  const room = page.width - 3 * COLUMN - THREAD_WIDTH - 4;
  const nameWidth = Math.max(10, Math.floor(room * NAME_SHARE));
  const head =
    pad('self', COLUMN, 'left') +
    pad('total', COLUMN, 'left') +
    pad('share', COLUMN, 'left') +
    ` ${pad('function', nameWidth)} ${pad('thread', THREAD_WIDTH)} place`;
  page.row(page.style.dim(head));
  for (const one of functions.slice(0, top)) {
    const [most] = one.threads;
    const thread = most === undefined ? '' : threadText(profile, most.thread, one.threads.length);
    const left =
      pad(formatSeconds(one.self), COLUMN, 'left') +
      pad(formatSeconds(one.total), COLUMN, 'left') +
      pad(formatRatio(one.selfRatio), COLUMN, 'left') +
      ` ${pad(clipEnd(nameOf(one.function), nameWidth), nameWidth)} ${pad(clipEnd(thread, THREAD_WIDTH), THREAD_WIDTH)} `;
    page.row(left + clipStart(placeOf(one.file, one.line), page.beside(displayWidth(left))));
  }
  const left = functions.length - top;
  if (left > 0) page.row(page.style.dim(`and ${formatCount(left)} more functions (--top, --json)`));
}

/** Below three a second (`--native`) with a decimal. */
function formatRate(rate: number): string {
  return rate < 3 ? String(Math.round(rate * 10) / 10) : String(Math.round(rate));
}

function threadText(profile: Profile, thread: number, among: number): string {
  const name = outside(profile.threads[thread]?.name ?? '?', 40);
  return among > 1 ? `${name} +${among - 1}` : name;
}

function writeThreads(page: Page, profile: Profile): void {
  const weights = new Map<number, Seconds>();
  for (const { thread, weight } of profile.entries)
    weights.set(thread, (weights.get(thread) ?? 0) + weight);
  const waits = profile.mode === 'gil';
  // Who only waited for the GIL was never found with it.
  for (const [thread, { gilWait }] of profile.threads.entries())
    if ((gilWait ?? 0) > 0 && !weights.has(thread)) weights.set(thread, 0);
  const all = totalWeight(profile);
  const several = new Set(profile.threads.map(({ pid }) => pid)).size > 1;
  page.gap();
  const columns = waits ? ['had it', 'waited', 'CPU'] : ['seen', 'CPU'];
  const head = columns.map((one) => pad(one, COLUMN, 'left')).join('');
  page.row(page.style.dim(`${head}  thread`));
  const waited = (thread: number): Seconds => profile.threads[thread]?.gilWait ?? 0;
  const ranked = [...weights].toSorted((a, b) => b[1] - a[1] || waited(b[0]) - waited(a[0]));
  for (const [index, weight] of ranked.slice(0, THREADS_SHOWN)) {
    const thread = profile.threads[index];
    if (thread === undefined) continue;
    const cpu = thread.onCpu === null ? '?' : formatSeconds(thread.onCpu);
    const name = several ? `${thread.pid} ${thread.name}` : thread.name;
    const part = (of: Seconds): Ratio => (profile.duration > 0 ? of / profile.duration : 0);
    const numbers = waits
      ? [formatRatio(part(weight)), formatRatio(part(waited(index))), cpu]
      : [formatRatio(weight / all), cpu];
    const left = numbers.map((one) => pad(one, COLUMN, 'left')).join('');
    page.row(`${left}  ${outside(name, 60)}`);
  }
  if (ranked.length > THREADS_SHOWN)
    page.row(page.style.dim(`and ${ranked.length - THREADS_SHOWN} more threads`));
}

function writeQuality(page: Page, report: ProfileReport): void {
  const { profile, quality, notes, native, recording } = report;
  page.gap();
  if (recording !== null) {
    const turns = `${formatCount(recording.blocks)} blocked ${recording.blocks === 1 ? 'turn' : 'turns'}`;
    page.paragraph(
      page.style.dim(`The stacks of ${turns}, as ${outside(recording.path, 200)} has them.`),
    );
    for (const note of notes) page.paragraph(outside(note, 600));
    return;
  }
  const errors = Object.entries(quality.errors).filter(([, count]) => count > 0);
  const wrong = errors.reduce((sum, [, count]) => sum + count, 0);
  const doubts = errors.map(([doubt, count]) => `${doubt} ${formatCount(count)}`).join(', ');
  const waited = profile.threads.reduce((sum, { runQueueWait }) => sum + (runQueueWait ?? 0), 0);
  const parts = [
    `${formatCount(quality.samples)} stacks in ${formatCount(quality.rounds)} looks`,
    `${formatCount(wrong)} could not be read soundly${doubts === '' ? '' : ` (${doubts})`}`,
    ...(quality.partial > 0
      ? [`${formatCount(quality.partial)} without their innermost, short calls`]
      : []),
    `${formatCount(quality.late)} looks late`,
    ...(profile.mode === 'cpu' && waited > 0
      ? [`${formatSeconds(waited)} of waiting for a core are not counted`]
      : []),
    `trace itself used ${formatRatio(quality.ownCpu)} of a core`,
    ...(quality.targetPaused > 0 && native === null
      ? [`the process was held for ${formatSeconds(quality.targetPaused)} at most`]
      : []),
  ];
  page.paragraph(page.style.dim(`${parts.join('; ')}.`));
  if (quality.loweredFor !== null)
    page.paragraph(
      `Looked ${Math.round(quality.rate)} times a second in the end instead of ${quality.askedRate}: that took ${formatRatio(quality.loweredFor)} of a core, more than --max-overhead ${formatRatio(quality.maxOverhead)}.`,
    );
  if (native !== null) page.paragraph(nativeSentence(native));
  for (const note of notes) page.paragraph(outside(note, 600));
}

function nameOf(name: string): string {
  return outside(name, 120);
}

function placeOf(file: string, line: number | null): string {
  const at = file === '' ? '' : outside(file, 300);
  return line === null ? at : `${at}:${line}`;
}
