import { TraceError } from '../../core/errors.ts';
import { EXIT } from '../../core/exit-code.ts';
import { checkLoadResult } from '../../core/load-check.ts';
import { byLatency, type LoadResult, type StageResult } from '../../core/load-types.ts';
import { HISTOGRAM_SCALE } from '../../core/exponential-histogram.ts';
import { printable } from '../../core/text.ts';
import type { Bytes } from '../../core/types.ts';
import { totalOf } from './total.ts';

/** Documents of `trace load --json`, read again: for `trace load merge` and `--baseline`. */

/** Ours are below 1 MiB a stage; more than this is something else. */
export const DOCUMENT_LIMIT: Bytes = 256 * 2 ** 20;
/** The widest span of buckets that is made into a list. */
const SPAN_LIMIT = 65_536;
const SCHEMA_VERSION = 1;

/** The result in a document. Throws a TraceError that says what is wrong with it; `source` names it (a path, untrusted). */
export function readLoadDocument(text: string, source: string): LoadResult {
  const fail = (why: string): TraceError =>
    new TraceError('ERR_LOAD_RESULT', `${printable(source)} is no result of trace load: ${why}`, {
      exitCode: EXIT.unsupported,
      remedy: 'Use what trace load --json printed, or the folder of a recording.',
    });
  let document: unknown;
  try {
    document = JSON.parse(text);
  } catch {
    throw fail('it is not JSON');
  }
  const root = asFields(document);
  const version = root['schema_version'];
  if (version !== undefined && version !== SCHEMA_VERSION) {
    throw fail(
      `its schema_version is ${printable(JSON.stringify(version), 20)}, this trace reads ${SCHEMA_VERSION}`,
    );
  }
  if (root['load'] === undefined) throw fail('it has no "load"');
  try {
    const result = checkLoadResult(resultOf(asFields(root['load'])));
    return { ...result, total: totalOf(result.stages, result.slos) };
  } catch (error) {
    if (error instanceof RangeError) throw fail(printable(error.message));
    throw error;
  }
}

type Fields = Readonly<Record<string, unknown>>;

function asFields(value: unknown): Fields {
  return typeof value === 'object' && value !== null ? (value as Fields) : {};
}

function items(value: unknown): readonly unknown[] {
  return Array.isArray(value) ? value : [];
}

/** The same with the names that the program uses; whether it is one is checked afterwards. */
function resultOf(load: Fields): Record<keyof LoadResult, unknown> {
  const parts = asFields(load['parts']);
  const stages = items(load['stages']).map((stage) => stageOf(asFields(stage)));
  return {
    runId: load['run_id'],
    parts: {
      expected: parts['expected'],
      present: items(parts['present']).map((part) => partOf(asFields(part))),
    },
    url: load['url'],
    api: load['api'],
    model: load['model'],
    streaming: load['streaming'],
    slos: items(load['slos']).map((one) => ({
      metric: asFields(one)['metric'],
      limit: asFields(one)['limit_s'],
    })),
    workers: load['workers'],
    seed: load['seed'],
    stages,
    // Worked out from the stages afterwards.
    total: totalOf([], []),
    interrupted: load['interrupted'],
  };
}

function partOf(part: Fields): Fields {
  const clock = part['server_clock'];
  return {
    index: part['index'],
    host: part['host'],
    cores: part['cores'],
    wall: part['started_unix_s'],
    mono: part['started_mono_s'],
    complete: part['complete'],
    serverOffset:
      clock === null
        ? null
        : {
            low: asFields(clock)['ahead_min_s'],
            high: asFields(clock)['ahead_max_s'],
            samples: asFields(clock)['samples'],
          },
  };
}

function stageOf(stage: Fields): Record<keyof StageResult, unknown> {
  const requests = asFields(stage['requests']);
  const window = asFields(asFields(stage['throughput'])['window']);
  const course = asFields(stage['course']);
  const histograms = asFields(stage['histograms']);
  const { input_tokens: inputTokens, output_tokens: outputTokens, ...counts } = window;
  return {
    label: stage['label'],
    asked: stage['asked'],
    from: stage['from_mono_s'],
    to: stage['to_mono_s'],
    sendingEnded: stage['sending_ended_mono_s'],
    window: { ...counts, inputTokens, outputTokens },
    course: { ...course, width: course['width_s'], ttft: course['ttft_sum_s'] },
    requests: {
      ...requests,
      examples: Object.fromEntries(
        Object.entries(asFields(requests['examples'])).map(([name, example]) => [
          name,
          { ...asFields(example), retryAfter: asFields(example)['retry_after_s'] },
        ]),
      ),
    },
    tokens: stage['tokens'],
    bytes: stage['bytes'],
    latency: byLatency((key) => histogramOf(asFields(histograms[key]), key)),
    goodput: stage['goodput'],
    inFlight: stage['in_flight'],
    health: {
      lateness: histogramOf(asFields(histograms['lateness']), 'lateness'),
      loopDelay: histogramOf(asFields(histograms['loop_delay']), 'loop_delay'),
      readLag: histogramOf(asFields(histograms['read_lag']), 'read_lag'),
      coreShare: asFields(stage['client'])['core_ratios'],
    },
  };
}

function histogramOf(histogram: Fields, name: string): Fields {
  const buckets = items(histogram['buckets']).map(Number);
  const counts = items(histogram['counts']);
  const offset = buckets[0] ?? 0;
  const length = buckets.length === 0 ? 0 : (buckets.at(-1) ?? 0) - offset + 1;
  const isRising = buckets.every(
    (bucket, i) => Number.isInteger(bucket) && (i === 0 || bucket > (buckets[i - 1] ?? 0)),
  );
  if (!isRising || counts.length !== buckets.length || length > SPAN_LIMIT) {
    throw new RangeError(`histograms.${name} must have as many counts as rising buckets`);
  }
  const dense: unknown[] = Array.from({ length }, () => 0);
  buckets.forEach((bucket, i) => {
    dense[bucket - offset] = counts[i];
  });
  return {
    ...histogram,
    zeroCount: histogram['zero_count'],
    scale: histogram['scale'] ?? HISTOGRAM_SCALE,
    offset,
    counts: dense,
  };
}
