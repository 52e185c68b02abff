import type { Frame } from '../../core/types.ts';
import { outside } from '../layout.ts';
import type { ProfileReport } from './report.ts';

/**
 * The profile as a timeline: Trace Event Format, complete events (`ph: "X"`), which chrome://tracing, Perfetto and speedscope open. Calls that
 * were found again at the next look are drawn as one.
 */

/** Microseconds, the format's unit. */
const MICROSECONDS = 1e6;
/** Runs of a thread further apart than so many looks are two visits, not one. */
const APART = 1.5;

interface Open {
  readonly frame: Frame;
  readonly from: number;
}

/** The file's content. */
export function renderChrome({ profile, targets, quality, toolVersion }: ProfileReport): string {
  const events: object[] = targets.map(({ pid, title }) => ({
    ph: 'M',
    name: 'process_name',
    pid,
    args: { name: outside(title, 200) },
  }));
  for (const [thread, { pid, tid, name }] of profile.threads.entries()) {
    const runs = profile.runs.filter((run) => run.thread === thread);
    if (runs.length === 0) continue;
    events.push({ ph: 'M', name: 'thread_name', pid, tid, args: { name: outside(name, 100) } });
    let open: Open[] = [];
    let end = 0;
    const close = (depth: number): void => {
      // The innermost ends first.
      for (const { frame, from } of open.splice(depth).toReversed())
        events.push(event(frame, { pid, tid, from, to: end }));
    };
    for (const run of runs) {
      const frames = (profile.stacks[run.stack] ?? []).toReversed();
      if (run.from - end > APART / quality.rate) close(0);
      close(commonDepth(open, frames));
      const from = Math.max(run.from, end);
      open = [...open, ...frames.slice(open.length).map((frame) => ({ frame, from }))];
      end = Math.max(end, run.to);
    }
    close(0);
  }
  return `${JSON.stringify({
    displayTimeUnit: 'ms',
    otherData: { exporter: `tracewright ${toolVersion}`, mode: profile.mode },
    traceEvents: events,
  })}\n`;
}

function event(
  { function: name, file, line }: Frame,
  { pid, tid, from, to }: { pid: number; tid: number; from: number; to: number },
): object {
  return {
    ph: 'X',
    cat: 'stack',
    name: outside(name, 400),
    pid,
    tid,
    ts: Math.round(from * MICROSECONDS),
    dur: Math.max(0, Math.round((to - from) * MICROSECONDS)),
    args: { file: outside(file, 1024), ...(line === null ? {} : { line }) },
  };
}

/** How many of the calls that are open go on: the same function in the same file, from the outermost on. */
function commonDepth(open: readonly Open[], frames: readonly Frame[]): number {
  let depth = 0;
  while (depth < open.length) {
    const [one, other] = [open[depth]?.frame, frames[depth]];
    if (one?.function !== other?.function || one?.file !== other?.file) break;
    depth++;
  }
  return depth;
}
