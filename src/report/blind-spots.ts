import { coveredTime } from '../core/stretches.ts';
import type { CollectorInfo, Gap, Seconds } from '../core/types.ts';
import { formatCount, formatRatio, formatSeconds } from '../core/units.ts';
import { outside } from './layout.ts';
import type { Page } from './page.ts';
import type { Report } from './report.ts';

const INDENT = { first: 2, rest: 4 } as const;

const REASONS: Readonly<Record<Gap['reason'], string>> = {
  late: 'came late',
  failed: 'could not read',
  dropped: 'dropped readings',
  suspended: 'stood still with the machine',
  'target-gone': 'found the target gone',
};

/** What could not be seen, why, and what would make it visible: collectors, gaps, trouble with the recording. */
export function writeBlindSpots(page: Page, report: Report): void {
  const absent = report.collectors.filter((collector) => !collector.available);
  const gaps = groupGaps(report.gaps);
  if (absent.length + gaps.length + report.problems.length === 0) return;
  page.gap();
  page.paragraph(page.style.bold('Not seen'));
  // One cause often takes several things away: it is said once.
  for (const [collector, ...others] of groupBySame(absent)) {
    const reason = outside(collector.reason ?? 'for an unknown reason', 400);
    page.paragraph(`${namesText([collector, ...others])}: ${reason}`, INDENT);
    for (const line of collector.remedy?.split('\n') ?? []) {
      page.paragraph(`→ ${outside(line, 400)}`, { first: 4, rest: 6 });
    }
  }
  for (const group of gaps) page.paragraph(gapText(group, report.duration), INDENT);
  for (const problem of report.problems) page.paragraph(outside(problem, 400), INDENT);
}

/** Processes named for whom something was not seen; the rest are counted. */
const PIDS_NAMED = 8;

/** Each name once, with the processes it is of where these are not the first. */
function namesText(absent: readonly CollectorInfo[]): string {
  const names = [...new Set(absent.map(({ name }) => outside(name, 40)))].join(', ');
  const pids = [...new Set(absent.flatMap(({ pid }) => pid ?? []))];
  if (pids.length === 0) return names;
  const more = pids.length > PIDS_NAMED ? ` and ${pids.length - PIDS_NAMED} more` : '';
  return `${names} of ${pids.length === 1 ? 'pid' : 'pids'} ${pids.slice(0, PIDS_NAMED).join(', ')}${more}`;
}

/** Collectors that are absent for the same reason, in their order. */
function groupBySame(
  absent: readonly CollectorInfo[],
): readonly (readonly [CollectorInfo, ...CollectorInfo[]])[] {
  const groups = new Map<string, [CollectorInfo, ...CollectorInfo[]]>();
  for (const collector of absent) {
    const key = `${collector.reason}\n${collector.remedy}`;
    const group = groups.get(key);
    if (group === undefined) groups.set(key, [collector]);
    else group.push(collector);
  }
  return [...groups.values()];
}

interface GapGroup {
  readonly collector: string;
  readonly reason: Gap['reason'];
  readonly count: number;
  readonly total: Seconds;
  readonly longest: Gap;
}

/** Gaps by collector and reason, the longest total first. What several processes lacked at the same time is one time. */
function groupGaps(gaps: readonly Gap[]): GapGroup[] {
  const groups = new Map<string, [Gap, ...Gap[]]>();
  for (const gap of gaps) {
    const key = `${gap.reason} ${gap.collector}`;
    const group = groups.get(key);
    if (group === undefined) groups.set(key, [gap]);
    else group.push(gap);
  }
  const lengthOf = ({ from, to }: Gap): Seconds => to - from;
  return [...groups.values()]
    .map((group) => ({
      collector: group[0].collector,
      reason: group[0].reason,
      count: group.length,
      total: coveredTime(group),
      longest: group.reduce((one, other) => (lengthOf(other) > lengthOf(one) ? other : one)),
    }))
    .sort((a, b) => b.total - a.total);
}

function gapText(group: GapGroup, duration: Seconds): string {
  const { longest } = group;
  const times = group.count === 1 ? 'once' : `${formatCount(group.count)} times`;
  const share = duration > 0 ? `, ${formatRatio(group.total / duration)} of the run` : '';
  const detail = longest.detail === '' ? '' : `: ${outside(longest.detail, 300)}`;
  const worst = group.count === 1 ? '' : `, longest ${formatSeconds(longest.to - longest.from)}`;
  return (
    `${outside(group.collector, 40)} ${REASONS[group.reason]} ${times}: ` +
    `${formatSeconds(group.total)} not covered${share}${worst}${detail}`
  );
}
