import type { ThreadTimes } from '../../core/thread-times.ts';
import type { Seconds } from '../../core/types.ts';
import { formatCount, formatSeconds } from '../../core/units.ts';
import { clipStart, displayWidth, outside, pad } from '../layout.ts';
import type { Page } from '../page.ts';

/** What `--exact` adds to a profile: each thread's times by the kernel's own events, and where in the code they were spent. */

export interface ExactThread extends ThreadTimes {
  readonly pid: number;
}

/** A place in the code with the times of the stacks that had it innermost of the program's own. */
export interface ExactPlace {
  readonly function: string;
  readonly file: string;
  readonly line: number | null;
  readonly running: Seconds;
  readonly waiting: Seconds;
  readonly asleep: Seconds;
}

export interface ExactReport {
  readonly duration: Seconds;
  readonly threads: readonly ExactThread[];
  readonly places: readonly ExactPlace[];
  /** Events that the kernel had no room for: above none, times are not exact. */
  readonly lost: number;
  readonly unread: number;
}

const COLUMN = 8;
const SHOWN = 10;

export function writeExact(page: Page, { threads, places, lost, unread }: ExactReport): void {
  const cells = (values: readonly string[]): string =>
    values.map((one) => pad(one, COLUMN, 'left')).join('');
  page.gap();
  page.row('Exactly, by the scheduler of the kernel');
  page.row(page.style.dim(`${cells(['ran', 'waited', 'slept', 'longest', 'times'])}  thread`));
  for (const one of threads.slice(0, SHOWN))
    page.row(
      `${cells([
        formatSeconds(one.running),
        formatSeconds(one.waiting),
        formatSeconds(one.asleep + one.held),
        formatSeconds(one.longestWait),
        formatCount(one.switches),
      ])}  ${outside(one.name, 40)}`,
    );
  if (threads.length > SHOWN)
    page.row(page.style.dim(`and ${threads.length - SHOWN} more threads`));
  if (places.length > 0) {
    page.gap();
    page.row(page.style.dim(`${cells(['ran', 'waited', 'slept'])}  in`));
  }
  for (const one of places.slice(0, SHOWN)) {
    const left = `${cells([one.running, one.waiting, one.asleep].map((time) => formatSeconds(time)))}  ${outside(one.function, 60)} `;
    const at = one.line === null ? outside(one.file, 300) : `${outside(one.file, 300)}:${one.line}`;
    page.row(left + clipStart(at, page.beside(displayWidth(left))));
  }
  if (lost + unread > 0)
    page.paragraph(
      `The kernel had no room for ${formatCount(lost)} events, and ${formatCount(unread)} could not be read: these times are not exact.`,
    );
}

/** The same for `--json`. */
export function exactJson({ duration, threads, places, lost, unread }: ExactReport): object {
  return {
    duration_s: duration,
    threads: threads.map((one) => ({
      pid: one.pid,
      tid: one.tid,
      name: outside(one.name, 100),
      running_s: one.running,
      waiting_s: one.waiting,
      asleep_s: one.asleep,
      uninterruptible_s: one.held,
      switches: one.switches,
      longest_wait_s: one.longestWait,
    })),
    places: places.map((one) => ({
      function: outside(one.function, 400),
      file: outside(one.file, 1024),
      line: one.line,
      running_s: one.running,
      waiting_s: one.waiting,
      asleep_s: one.asleep,
    })),
    lost_events: lost,
    unread_events: unread,
  };
}
