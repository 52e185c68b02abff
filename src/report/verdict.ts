import { VERDICT_WORDS } from '../core/catalogue/catalogue.ts';
import { COLLECTOR } from '../core/collector-name.ts';
import { METRIC } from '../core/semconv.ts';
import type { Finding, Ratio, Seconds, TargetInfo } from '../core/types.ts';
import { formatCount, formatInterval, formatRatio, formatSeconds } from '../core/units.ts';
import { outside } from './layout.ts';
import type { Report } from './report.ts';

/** The first line of a report: a word, how grave it is, and the sentence that belongs to it. */
export interface Verdict {
  readonly word: string;
  readonly tone: 'bad' | 'unsure' | 'good';
  readonly sentence: string;
}

/** Whether a finding decides the outcome: `warning` or above, and not inconclusive. */
export function isVerdict(finding: Finding): boolean {
  return finding.severity !== 'note' && finding.confidence !== 'inconclusive';
}

/** What the run comes to, in one sentence. */
export function verdictOf(report: Report): Verdict {
  const decisive = report.findings.filter(isVerdict);
  const [first] = decisive;
  if (first !== undefined) {
    const more = decisive.length - 1;
    const rest = more === 0 ? '' : `; ${more} more ${more === 1 ? 'finding' : 'findings'} below`;
    return {
      word: VERDICT_WORDS[first.kind],
      tone: first.severity === 'critical' ? 'bad' : 'unsure',
      sentence: sentenceOf(first, report) + rest,
    };
  }
  const notes = report.findings.length;
  if (notes > 0) {
    return {
      word: 'Nothing decisive',
      tone: 'unsure',
      sentence: `${notes === 1 ? 'one note' : `${notes} notes`} below`,
    };
  }
  return nothingFound(report);
}

/** Silence means something only where there was something to hear: what was watched, how long, from how many readings. */
function nothingFound(report: Report): Verdict {
  const whose = report.targets[0] === undefined ? 'the target' : describeTarget(report.targets[0]);
  const readings = report.metrics
    .find((metric) => metric.name === METRIC.loopDelay.name)
    ?.series.reduce((sum, series) => sum + series.count, 0);
  if (readings === undefined && report.targets[0]?.runtime === 'native') {
    return nothingGrew(report, whose);
  }
  if (readings === undefined) {
    return {
      word: 'Nothing seen',
      tone: 'unsure',
      sentence: `the event loop of ${whose} could not be watched; why stands below`,
    };
  }
  const threshold = report.settings['lag_threshold_s'];
  const limit = typeof threshold === 'number' ? ` for ${formatSeconds(threshold)}` : '';
  return {
    word: 'Nothing found',
    tone: hasWorkers(report) ? 'unsure' : 'good',
    sentence:
      `${loopsText(report, whose)} seen to stand still${limit} ` +
      `in ${formatSeconds(report.duration)} (${formatCount(readings)} readings)${workersText(report)}`,
  };
}

/** Whose loops were read; of several processes some have none. */
function loopsText({ processes }: Report, whose: string): string {
  const read = processes.filter(({ loopDelayMax }) => loopDelayMax !== null).length;
  if (read < 2) return `the event loop of ${whose} was never`;
  return `none of the event loops of ${read} processes, ${whose} among them, was`;
}

/** Below this length the detectors of growth say nothing of descriptors and threads, and of memory. */
const GROWTH_TIME: Seconds = 8;
const MEMORY_GROWTH_TIME: Seconds = 60;

/** A program without an event loop: what can be said of it is whether something grows. */
function nothingGrew(report: Report, whose: string): Verdict {
  const { duration } = report;
  const loop = `it has no event loop that could be watched${workersText(report)}`;
  if (duration < GROWTH_TIME) {
    const sentence = `${formatSeconds(duration)} of ${whose} are too short to see something grow, and ${loop}`;
    return { word: 'Nothing seen', tone: 'unsure', sentence };
  }
  const isLong = duration >= MEMORY_GROWTH_TIME;
  const what = isLong
    ? 'neither memory nor descriptors nor threads'
    : 'neither descriptors nor threads';
  const memory = isLong ? '' : ` (memory is judged from ${formatSeconds(MEMORY_GROWTH_TIME)} on)`;
  return {
    word: 'Nothing found',
    tone: hasWorkers(report) ? 'unsure' : 'good',
    sentence: `${what} of ${whose} grew without levelling off in ${formatSeconds(duration)}${memory}; ${loop}`,
  };
}

function hasWorkers(report: Report): boolean {
  return report.collectors.some(({ name }) => name === COLLECTOR.workers);
}

function workersText(report: Report): string {
  return hasWorkers(report) ? '; its worker processes were not watched' : '';
}

function sentenceOf(finding: Finding, report: Report): string {
  const { measure } = finding;
  const count = measure['count'];
  const target = report.targets.find((one) => one.pid === finding.pid);
  const worst = worstOf(measure);
  if (finding.kind !== 'loop-blocked' || count === undefined || worst === null || !target) {
    return outside(finding.summary, 400);
  }
  const [place] = finding.where;
  const where = place === undefined ? '' : `, in ${describePlace(place)}`;
  const times = count === 1 ? 'once' : `${formatCount(count)} times`;
  const how = count === 1 ? `for ${worst}` : `worst ${worst}`;
  return `the event loop of ${describeTarget(target)} stood still ${times}, ${how}${where}${waitText(measure)}`;
}

/** From this share of the blocked time on, waiting for a core is part of the verdict: the machine is to blame as well. */
const NOTABLE_WAIT: Ratio = 0.25;

function waitText(measure: Finding['measure']): string {
  const [waited, total] = [measure['run_queue_wait_s'], measure['total_s']];
  if (waited === undefined || total === undefined || waited < total * NOTABLE_WAIT) return '';
  return `; ${formatRatio(Math.min(1, waited / total))} of that time it waited for a core`;
}

function worstOf(measure: Finding['measure']): string | null {
  const [low, high, single] = [measure['worst_min_s'], measure['worst_max_s'], measure['worst_s']];
  if (low !== undefined && high !== undefined) return formatInterval(low, high);
  return single === undefined ? null : formatSeconds(single);
}

/** `pid 1 in container 3f2a1b9c0d4e`, or nothing where its pid is the same everywhere. */
function insideText({ namespacePid, container }: TargetInfo): string {
  if (namespacePid === undefined) return '';
  const isNamed = container !== undefined && container !== 'pid namespace';
  return `pid ${namespacePid} in ${isNamed ? `container ${outside(container, 20)}` : 'its pid namespace'}`;
}

/** `pid 4312 (python 3.11.7, uvicorn app:main)`. */
export function describeTarget(target: TargetInfo): string {
  const version = target.runtimeVersion === null ? '' : ` ${outside(target.runtimeVersion, 20)}`;
  const title = outside(shortTitle(target.title), 60);
  const parts = [`${outside(target.runtime, 20)}${version}`, title, insideText(target)];
  return `pid ${target.pid} (${parts.filter((part) => part !== '').join(', ')})`;
}

/** The command line from the program on, without the folder it lies in. */
export function shortTitle(title: string): string {
  return withoutFolder(withoutInterpreter(title));
}

/** The command line from the program on: which interpreter runs it is said already. */
export function withoutInterpreter(title: string): string {
  return title.replace(/^(?:\S*\/)?(?:python[\d.]*|node)\s+(?=\S)/, '');
}

/** A program's folder takes the room of its arguments; a script's (`app/main.py`) is part of its name. */
function withoutFolder(title: string): string {
  return title.replace(/^\S*\/bin\/(?=[^\s/])/, '');
}

/** `rerank.score (app/rerank.py:88)`. */
export function describePlace(place: Finding['where'][number]): string {
  const line = place.line === null ? '' : `:${place.line}`;
  return `${outside(place.function, 80)} (${outside(place.file, 160)}${line})`;
}
