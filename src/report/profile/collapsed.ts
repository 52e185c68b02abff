import type { Profile } from '../../core/profile.ts';
import type { Frame } from '../../core/types.ts';
import { outside } from '../layout.ts';

/** Stacks as flamegraph.pl, inferno and speedscope read them: `thread;outermost;…;innermost count`, a line each. */
export function renderCollapsed(profile: Profile): string {
  const lines = new Map<string, number>();
  const several = new Set(profile.threads.map(({ pid }) => pid)).size > 1;
  for (const { thread, stack, count } of profile.entries) {
    const facts = profile.threads[thread];
    const frames = (profile.stacks[stack] ?? []).toReversed().map(frameText);
    const owner = [
      ...(several ? [`process ${facts?.pid ?? '?'}`] : []),
      clean(`thread ${facts?.name ?? '?'}`),
    ];
    const key = [...owner, ...frames].join(';');
    lines.set(key, (lines.get(key) ?? 0) + count);
  }
  return [...lines].map(([key, count]) => `${key} ${count}\n`).join('');
}

function frameText({ function: name, file, line }: Frame): string {
  const at = file === '' ? '' : ` (${file}${line === null ? '' : `:${line}`})`;
  return clean(`${name}${at}`);
}

/** The semicolon separates frames. */
function clean(text: string): string {
  return outside(text, 400).replaceAll(';', ',');
}
