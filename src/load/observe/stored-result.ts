import {
  type ErrorExample,
  type LoadErrorClass,
  type LoadPart,
  type LoadResult,
  type Slo,
  type StageResult,
} from '../../core/load-types.ts';
import { asArray, asObject, asString } from '../../core/otlp-values.ts';
import { printable } from '../../core/text.ts';

/** Snapshots of a load run back into what they were made of. A file may say anything: what is missing or no number is the neutral value. */

type Body = Readonly<Record<string, unknown>>;

const APIS: readonly LoadResult['api'][] = ['chat', 'completions', 'responses', 'embeddings'];
const SLO_METRICS: readonly Slo['metric'][] = ['ttft', 'tpot', 'itl', 'e2e', 'ntpot'];
const TEXT_LIMIT = 500;
const LIST_LIMIT = 4096;
const ERROR_CLASS = /^[a-z_]{1,20}(?:\.[a-z0-9_]{1,20})?$/;

/** All of a result but its stages; undefined when it is none. */
export function toRunPart(body: unknown): Omit<LoadResult, 'stages' | 'total'> | undefined {
  const run = asObject(body);
  const api = APIS.find((known) => known === run?.['api']);
  if (run === undefined || api === undefined) return undefined;
  const parts = asObject(run['parts']) ?? {};
  return {
    runId: text(run['runId']),
    parts: {
      expected: number(parts['expected']),
      present: objects(parts['present']).map(toPart),
    },
    url: text(run['url']),
    api,
    model: text(run['model']),
    streaming: run['streaming'] === true,
    slos: objects(run['slos']).flatMap((slo) => {
      const metric = SLO_METRICS.find((known) => known === slo['metric']);
      return metric === undefined ? [] : [{ metric, limit: number(slo['limit']) }];
    }),
    workers: number(run['workers']),
    seed: number(run['seed']),
    interrupted: run['interrupted'] === true,
  };
}

/** A stage without its histograms. */
export type StagePart = Omit<StageResult, 'latency' | 'health'> & {
  readonly index: number;
  readonly coreShare: readonly number[];
};

/** A stage without its histograms; undefined when it has no index or no requests. */
export function toStagePart(body: unknown): StagePart | undefined {
  const stage = asObject(body);
  const requests = asObject(stage?.['requests']);
  const index = stage?.['index'];
  if (stage === undefined || requests === undefined || !Number.isSafeInteger(index))
    return undefined;
  const bytes = asObject(stage['bytes']) ?? {};
  const goodput = asObject(stage['goodput']);
  const inFlight = asObject(stage['inFlight']) ?? {};
  return {
    index: Number(index),
    label: text(stage['label']),
    asked: toAsked(stage['asked']),
    from: number(stage['from']),
    to: number(stage['to']),
    sendingEnded: number(stage['sendingEnded']),
    window: toWindow(asObject(stage['window']) ?? {}),
    course: toCourse(asObject(stage['course']) ?? {}),
    requests: toRequests(requests),
    tokens: toTokens(asObject(stage['tokens']) ?? {}),
    bytes: { sent: number(bytes['sent']), received: number(bytes['received']) },
    goodput: goodput === undefined ? null : { met: number(goodput['met']) },
    inFlight: { mean: number(inFlight['mean']), max: number(inFlight['max']) },
    coreShare: numbers(stage['coreShare']),
  };
}

function toAsked(value: unknown): StageResult['asked'] {
  const asked = asObject(value);
  const kind = asked?.['kind'];
  if (asked === undefined || (kind !== 'concurrency' && kind !== 'rate')) return null;
  return { kind, value: number(asked['value']) };
}

function toWindow(window: Body): StageResult['window'] {
  return {
    seconds: number(window['seconds']),
    whole: window['whole'] === true,
    ok: number(window['ok']),
    failed: number(window['failed']),
    inputTokens: number(window['inputTokens']),
    outputTokens: number(window['outputTokens']),
    events: number(window['events']),
    met: number(window['met']),
  };
}

function toCourse(course: Body): StageResult['course'] {
  return {
    // Nothing divides by a width that a file made zero.
    width: number(course['width']) || 1,
    scheduled: numbers(course['scheduled']),
    succeeded: numbers(course['succeeded']),
    ttft: numbers(course['ttft']),
    ended: numbers(course['ended']),
  };
}

function toRequests(requests: Body): StageResult['requests'] {
  return {
    sent: number(requests['sent']),
    ok: number(requests['ok']),
    failed: number(requests['failed']),
    unfinished: number(requests['unfinished']),
    warmup: number(requests['warmup']),
    queued: number(requests['queued']),
    resent: number(requests['resent']),
    errors: byClass(requests['errors'], number),
    statuses: Object.fromEntries(
      Object.entries(asObject(requests['statuses']) ?? {})
        .filter(([status]) => /^\d{3}$/.test(status))
        .map(([status, n]) => [status, number(n)]),
    ),
    examples: byClass(requests['examples'], toExample),
  };
}

function toExample(value: unknown): ErrorExample {
  const example = asObject(value) ?? {};
  const retryAfter = example['retryAfter'];
  return {
    detail: text(example['detail']),
    retryAfter: typeof retryAfter === 'number' ? retryAfter : null,
  };
}

function byClass<T>(
  value: unknown,
  read: (item: unknown) => T,
): Readonly<Partial<Record<LoadErrorClass, T>>> {
  const all = Object.entries(asObject(value) ?? {}).slice(0, LIST_LIMIT);
  // A class of a newer version passes through: it is shown as text, never acted on.
  const named = all.filter(([name]) => ERROR_CLASS.test(name));
  return Object.fromEntries(named.map(([name, item]) => [name, read(item)]));
}

function toTokens(tokens: Body): StageResult['tokens'] {
  return {
    input: number(tokens['input']),
    output: number(tokens['output']),
    cached: number(tokens['cached']),
    reasoning: number(tokens['reasoning']),
    counted: number(tokens['counted']),
    uncounted: number(tokens['uncounted']),
    events: number(tokens['events']),
  };
}

function toPart(part: Body): LoadPart {
  const offset = asObject(part['serverOffset']);
  return {
    index: number(part['index']),
    host: text(part['host']),
    cores: number(part['cores']),
    wall: number(part['wall']),
    mono: number(part['mono']),
    serverOffset:
      offset === undefined
        ? null
        : {
            low: number(offset['low']),
            high: number(offset['high']),
            samples: number(offset['samples']),
          },
    complete: part['complete'] === true,
  };
}

function objects(value: unknown): readonly Body[] {
  return asArray(value)
    .slice(0, LIST_LIMIT)
    .map(asObject)
    .filter((item) => item !== undefined);
}

function numbers(value: unknown): readonly number[] {
  return asArray(value).slice(0, LIST_LIMIT).map(number);
}

function number(value: unknown): number {
  return typeof value === 'number' && Number.isFinite(value) ? value : 0;
}

function text(value: unknown): string {
  return printable(asString(value), TEXT_LIMIT);
}
