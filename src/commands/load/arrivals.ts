import { usageError } from '../../core/errors.ts';
import { printable } from '../../core/text.ts';
import type { Seconds } from '../../core/types.ts';
import type { Arrival, StagePlan } from '../../load/plan.ts';
import { contradiction, type LoadValues } from './values.ts';
import { parseCount, parseDecimal, parseDuration } from '../command-line/parse.ts';

/** When requests are sent, and how long: the stages of a run from its flags. */

export const DEFAULT_LOAD_DURATION: Seconds = 30;
/** Node's timers end at 24.8 days (2^31 ms). */
export const LONGEST: Seconds = 24 * 86_400;
const SHORTEST: Seconds = 0.1;
export const MOST_CONCURRENCY = 100_000;
const MOST_RATE = 1e6;
const MOST_STAGES = 100;
export const MOST_REQUESTS = 1e9;
/** Slots start 100 a second, at most for a second: a thundering herd of connections would measure the herd. */
const START_EVERY: Seconds = 0.01;
const LONGEST_START: Seconds = 1;

/** How long each stage lasts: whichever comes first. */
interface Extent {
  readonly duration: Seconds | null;
  readonly requests: number | null;
}

/** The stages that the flags ask for, at least one. */
export function parseStages(values: LoadValues): readonly StagePlan[] {
  const kind = values.oneOf(['concurrency', 'rate', 'sweep', 'sweep-rate', 'stages', 'replay']);
  const max = values.count('max-concurrency', 1, MOST_CONCURRENCY);
  const isOpen = kind === 'rate' || kind === 'sweep-rate' || kind === 'stages';
  if (values.has('burstiness') && !isOpen && !values.has('ramp-from')) {
    throw usageError('--burstiness shapes the gaps of a rate', 'Add -r, --sweep-rate or --stages.');
  }
  if (values.has('speed') && kind !== 'replay') throw usageError('--speed needs --replay');
  if (kind === 'replay') return [replayStage(values, max)];
  if (kind === 'stages') return listedStages(values, max);
  const ramped = rampedRate(values, max);
  if (ramped !== null) return [ramped];

  const extent = chooseExtent(values);
  if (kind === 'rate') {
    return openStages([values.text('rate') ?? ''], '-r, --rate', { values, max, extent });
  }
  const rates = sweepTexts(values.text('sweep-rate'), '--sweep-rate');
  if (rates !== null) return openStages(rates, '--sweep-rate', { values, max, extent });
  return closedStages(values, max, extent);
}

function closedStages(
  values: LoadValues,
  max: number | null,
  extent: Extent,
): readonly StagePlan[] {
  const levels = sweepTexts(values.text('sweep'), '--sweep');
  const flag = levels === null ? '-c, --concurrency' : '--sweep';
  // vLLM's --max-concurrency without a rate is the level; beside one it is a limit.
  const texts = levels ?? [values.text('concurrency') ?? String(max ?? 1)];
  return bounded(
    texts.map((text) => {
      const level = parseCount(text, { flag, least: 1, most: MOST_CONCURRENCY });
      return closedStage(Math.min(level, max ?? level), extent, values);
    }),
  );
}

function chooseExtent(values: LoadValues): Extent {
  const requests = values.count('requests', 1, MOST_REQUESTS);
  const duration = values.duration('duration', SHORTEST, LONGEST);
  return {
    requests,
    duration: duration ?? (requests === null ? DEFAULT_LOAD_DURATION : null),
  };
}

function closedStage(concurrency: number, extent: Extent, values: LoadValues): StagePlan {
  const asked = values.duration('ramp', 0, LONGEST);
  const usual = Math.min(concurrency * START_EVERY, LONGEST_START, (extent.duration ?? 600) / 10);
  return {
    label: `c=${concurrency}`,
    arrival: { kind: 'closed', concurrency, rampUp: asked ?? usual },
    maxConcurrency: null,
    ...extent,
  };
}

function openStages(
  texts: readonly string[],
  flag: string,
  context: {
    readonly values: LoadValues;
    readonly max: number | null;
    readonly extent: Extent;
  },
): readonly StagePlan[] {
  const { values, max, extent } = context;
  const burstiness = chooseBurstiness(values);
  const ramp = values.duration('ramp', 0, LONGEST);
  return bounded(
    texts.flatMap((text) => {
      if (text.trim() === 'inf') return [everythingAtOnce(max, extent)];
      const rate = parseRate(text, flag);
      const level = openStage({ rate, rateTo: rate, burstiness }, max, extent);
      if (ramp === null || ramp === 0) return [level];
      // From a hundredth: a rate that begins at nothing has no first gap.
      const up = { rate: rate / 100, rateTo: rate, burstiness };
      return [
        openStage(up, max, { duration: ramp, requests: null }, `ramp to ${rate} req/s`),
        { ...level, continuous: true },
      ];
    }),
  );
}

/** A rate without limit is a closed loop: as many at once as there are requests, or as the limit allows. */
function everythingAtOnce(max: number | null, extent: Extent): StagePlan {
  const concurrency = max ?? extent.requests;
  if (concurrency === null) {
    throw usageError('-r inf sends everything at once: how much?', 'Add -n or --max-concurrency.');
  }
  const bound = Math.min(concurrency, MOST_CONCURRENCY);
  return {
    label: `c=${bound}`,
    arrival: { kind: 'closed', concurrency: bound, rampUp: 0 },
    maxConcurrency: null,
    ...extent,
  };
}

function openStage(
  arrival: Omit<Extract<Arrival, { kind: 'open' }>, 'kind'>,
  maxConcurrency: number | null,
  extent: Extent,
  label?: string,
): StagePlan {
  const { rate, rateTo } = arrival;
  return {
    label: label ?? (rate === rateTo ? `${rate} req/s` : `${rate}..${rateTo} req/s`),
    arrival: { kind: 'open', ...arrival },
    maxConcurrency,
    ...extent,
  };
}

/** `8`, `8/s`, `90/m`: requests a second. */
function parseRate(text: string, flag: string): number {
  const [, number = text, unit = 's'] = /^(.*?)\s*\/\s*(s|m|min)$/.exec(text.trim()) ?? [];
  const value = parseDecimal(number, { flag, least: 0.0001, most: MOST_RATE });
  return unit === 's' ? value : value / 60;
}

/** Null: constant gaps. */
function chooseBurstiness(values: LoadValues): number | null {
  const text = values.text('burstiness');
  if (text === null || text === 'inf') return null;
  return parseDecimal(text, { flag: '--burstiness', least: 0.01, most: 1000 });
}

/** `1,2,4` as given; `1..64` doubles, and ends with its end. */
function sweepTexts(text: string | null, flag: string): readonly string[] | null {
  if (text === null) return null;
  const [, first, last] = /^([\d.]+?)\.\.([\d.]+)$/.exec(text.trim()) ?? [];
  if (first === undefined || last === undefined) return text.split(',').map((one) => one.trim());
  const from = parseDecimal(first, { flag, least: 0.0001, most: MOST_RATE });
  const to = parseDecimal(last, { flag, least: 0.0001, most: MOST_RATE });
  if (to < from) throw usageError(`${flag} goes up, got '${printable(text, 40)}'`);
  const levels: number[] = [];
  for (let level = from; level < to; level *= 2) levels.push(level);
  return [...levels, to].map(String);
}

/** `10/s:30s,10..50/s:60s` over rates, `8:30s,16:200` over concurrency: level, colon, time or number of requests. */
function listedStages(values: LoadValues, max: number | null): readonly StagePlan[] {
  for (const flag of ['duration', 'requests'] as const) {
    if (values.has(flag)) throw contradiction(`--${flag}`, '--stages');
  }
  const burstiness = chooseBurstiness(values);
  const stages = bounded(
    (values.text('stages') ?? '').split(',').map((piece) => {
      const [level = '', length, more] = piece.trim().split(':');
      if (length === undefined || more !== undefined) throw wrongStage(piece);
      const extent = stageExtent(length, piece);
      const [, from = '', , to] = /^(.+?)(\.\.(.+?))?\/s$/.exec(level) ?? [];
      if (from === '') {
        const concurrency = parseCount(level.replace(/^c=?/, ''), {
          flag: '--stages',
          least: 1,
          most: MOST_CONCURRENCY,
        });
        return closedStage(Math.min(concurrency, max ?? concurrency), extent, values);
      }
      const rate = parseRate(from, '--stages');
      const rateTo = to === undefined ? rate : parseRate(to, '--stages');
      if (rate !== rateTo && extent.duration === null) {
        throw usageError(`a ramp needs a time, got '${printable(piece, 40)}'`);
      }
      return openStage({ rate, rateTo, burstiness }, max, extent);
    }),
  );
  // One course of load without pauses, other than the levels of a sweep, which must not disturb each other.
  return stages.map((stage, at) => (at === 0 ? stage : { ...stage, continuous: true }));
}

function stageExtent(text: string, piece: string): Extent {
  const [, count] = /^(\d+)(?:n|req)?$/.exec(text) ?? [];
  if (count !== undefined) {
    const requests = parseCount(count, { flag: '--stages', least: 1, most: MOST_REQUESTS });
    return { duration: null, requests };
  }
  if (!/[a-z]$/.test(text)) throw wrongStage(piece);
  const bounds = { least: SHORTEST, most: LONGEST };
  const duration = parseDuration(text, { flag: '--stages', bare: 's', ...bounds });
  return { duration, requests: null };
}

function wrongStage(piece: string): Error {
  return usageError(
    `--stages takes a level and a length each, got '${printable(piece, 40)}'`,
    "Such as '10/s:30s,10..50/s:1m' (rates) or '8:30s,16:200' (streams; 200 requests).",
  );
}

function replayStage(values: LoadValues, maxConcurrency: number | null): StagePlan {
  const speed = values.decimal('speed', 0.001, 1000) ?? 1;
  return {
    label: speed === 1 ? 'replay' : `replay x${speed}`,
    arrival: { kind: 'replay', speed },
    maxConcurrency,
    duration: values.duration('duration', SHORTEST, LONGEST),
    requests: values.count('requests', 1, MOST_REQUESTS),
  };
}

/** vLLM's --ramp-up-start-rps and --ramp-up-end-rps: one ramp over the whole run. */
function rampedRate(values: LoadValues, max: number | null): StagePlan | null {
  const from = values.text('ramp-from');
  const to = values.text('ramp-to');
  if (from === null && to === null) return null;
  if (from === null || to === null) {
    throw usageError('--ramp-up-start-rps and --ramp-up-end-rps belong together');
  }
  const rate = parseRate(from, '--ramp-up-start-rps');
  const rateTo = parseRate(to, '--ramp-up-end-rps');
  const { duration, requests } = chooseExtent(values);
  // So many requests take so long at the mean of the two rates.
  const length = duration ?? (requests ?? 0) / ((rate + rateTo) / 2);
  const burstiness = values.has('burstiness') ? chooseBurstiness(values) : 1;
  return openStage({ rate, rateTo, burstiness }, max, { duration: length, requests });
}

function bounded(stages: readonly StagePlan[]): readonly StagePlan[] {
  if (stages.length <= MOST_STAGES) return stages;
  throw usageError(`${stages.length} stages are too many`, `At most ${MOST_STAGES}.`);
}
