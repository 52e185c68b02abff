import { mainThreadLooks, roleWithoutRank, targetsOf } from '../core/process-view.ts';
import type { Frame, RecordingView } from '../core/types.ts';
import { clipEnd, outside } from './layout.ts';
import type { Page } from './page.ts';

/** Where processes that do the same work were at the end, alike ones together: the one that is elsewhere is the one to look at. */

/** Processes whose main threads had the same stack. */
export interface StackGroup {
  readonly role: string | null;
  readonly pids: readonly number[];
  /** Innermost first. */
  readonly frames: readonly Frame[];
}

/** Frames shown of a stack. */
const FRAMES_SHOWN = 4;
const GROUPS_SHOWN = 8;
const PIDS_SHOWN = 6;

/** The last known stacks of the main threads, the smallest group of a role first; empty for a run of one process. */
export function groupStacks(view: RecordingView): readonly StackGroup[] {
  const targets = targetsOf(view);
  if (targets.length < 2) return [];
  const groups = new Map<
    string,
    { role: string | null; pids: number[]; frames: readonly Frame[] }
  >();
  for (const [pid, frames] of new Map(
    mainThreadLooks(view).map((look) => [look.pid, look.frames]),
  )) {
    const role = roleWithoutRank(targets.find((target) => target.pid === pid)?.role ?? null);
    const key = JSON.stringify([role, frames.map(({ function: name, file }) => [name, file])]);
    const group = groups.get(key);
    if (group === undefined) groups.set(key, { role, pids: [pid], frames });
    else group.pids.push(pid);
  }
  return [...groups.values()].toSorted(
    (a, b) => (a.role ?? '').localeCompare(b.role ?? '') || a.pids.length - b.pids.length,
  );
}

/** The groups, a line each. */
export function writeStacks(page: Page, groups: readonly StackGroup[]): void {
  if (groups.length === 0) return;
  page.gap();
  page.row(page.style.bold('Where their main threads were last'));
  for (const { role, pids, frames } of groups.slice(0, GROUPS_SHOWN)) {
    const named = pids.slice(0, PIDS_SHOWN).join(', ');
    const more = pids.length > PIDS_SHOWN ? ` and ${pids.length - PIDS_SHOWN} more` : '';
    const whose = role === null ? '' : `${outside(role, 40)} `;
    page.paragraph(`${whose}${named}${more}: ${stackText(frames)}`, { first: 2, rest: 4 });
  }
  const left = groups.length - GROUPS_SHOWN;
  if (left > 0) page.paragraph(`and ${left} more in --json`, { first: 2, rest: 4 });
}

function stackText(frames: readonly Frame[]): string {
  if (frames.length === 0) return 'no Python code';
  const shown = frames.slice(0, FRAMES_SHOWN).map(({ function: name, file, line }) => {
    const base = outside(file, 400).split('/').at(-1) ?? '';
    return `${clipEnd(outside(name, 80), 48)} (${base}${line === null ? '' : `:${line}`})`;
  });
  return shown.join(' < ') + (frames.length > FRAMES_SHOWN ? ' < …' : '');
}
