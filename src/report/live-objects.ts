import { constructorGrowth, type ListenerCount, type LiveObjects } from '../core/live-objects.ts';
import { printable } from '../core/text.ts';
import type { Seconds } from '../core/types.ts';
import { formatBytes, formatCount, formatSeconds } from '../core/units.ts';

/** What `trace heap --live-objects` prints. */

/** Two snapshots of one process. */
export interface LiveObjectsReport {
  readonly before: LiveObjects;
  readonly after: LiveObjects;
  readonly elapsed: Seconds;
  /** Lines of each list. */
  readonly rows: number;
}

export function renderLiveObjects({ before, after, elapsed, rows }: LiveObjectsReport): string {
  const growth = constructorGrowth(before, after);
  const [most] = growth;
  const verdict =
    most === undefined
      ? `no constructor gained objects that stay in ${formatSeconds(elapsed)}`
      : `${printable(most.name, 100)} gained ${formatCount(most.addedCount)} objects that stay in ${formatSeconds(elapsed)}`;
  const lines = [verdict, ''];
  if (growth.length > 0) lines.push('By constructor: gained, their own size, in all');
  for (const { name, count, addedCount, addedBytes } of growth.slice(0, rows))
    lines.push(
      `  +${formatCount(addedCount)}  ${addedBytes < 0 ? '' : '+'}${formatBytes(addedBytes)}  ${formatCount(count)}  ${printable(name, 100)}`,
    );
  lines.push(
    `Pending promises that something waits for: ${formatCount(after.waitedFor)} (${signed(after.waitedFor - before.waitedFor)})`,
  );
  if (after.listeners.length === 0) lines.push('No event has more than 10 listeners');
  else lines.push('Listeners of one event');
  for (const one of after.listeners.slice(0, rows))
    lines.push(
      `  ${formatCount(one.count)} (${signed(one.count - countBefore(before, one))})  ${printable(one.event, 100)} of ${printable(one.emitter, 100)}`,
    );
  return `${lines.join('\n')}\n`;
}

/** The emitter with as many listeners, or the next below, of the same constructor and event: emitters have no names. */
function countBefore({ listeners }: LiveObjects, { emitter, event, count }: ListenerCount): number {
  const alike = listeners.find(
    (one) => one.emitter === emitter && one.event === event && one.count <= count,
  );
  return alike?.count ?? 0;
}

function signed(value: number): string {
  return value < 0 ? `-${formatCount(-value)}` : `+${formatCount(value)}`;
}
