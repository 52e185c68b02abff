import { otlpDecoder } from '../core/otlp-decode.ts';
import { type EncodeContext, encodeMetrics, encodeSpans } from '../core/otlp-encode.ts';
import { encodeLogs, type LogSource } from '../core/otlp-log-encode.ts';
import type { OtlpPayload } from '../core/otlp-types.ts';
import { ATTR, EVENT } from '../core/semconv.ts';
import type { Finding, Histogram, Metric, Sample, Seconds, Span } from '../core/types.ts';
import { formatSeconds } from '../core/units.ts';
import type { Owner } from '../platform/ownership.ts';
import { RecordingContents } from './contents.ts';
import { openWritten, type WrittenFile, writeCompressed } from './files.ts';
import { LINE_POINTS, toLine } from './line.ts';
import { readLines } from './lines.ts';
import { stackIdsIn } from './stack-references.ts';

/** Finished files of a recording become one that holds less: of readings one for each window, with the extremes in between. */

/** A segment has 64 MiB at most, a reading takes 150 bytes there. */
const POINTS = 2_000_000;
/** Spans, gaps and events of one file, the worst of them where there are more. */
const RECORDS = 20_000;
/** Of those, blocks and seconds of busy threads; beyond it those of one place and stretch become one, with their sums. */
const ALIKE = 2_000;

/** How to thin out. */
export interface DownsampleOptions {
  /** Into so many equal windows, at most, the time that they cover is divided. */
  readonly windows: number;
  /** Number of the last segment that is in the result. */
  readonly through: number;
  readonly owner: Owner | null;
  readonly context: EncodeContext;
  /** The files as they were written, in the order of their paths: another one is not read. */
  readonly written?: readonly WrittenFile[];
}

/** Puts what is in the compressed files into the first of them, thinned out. It is replaced at once; on failure nothing has changed. */
export async function downsampleSegments(
  paths: readonly string[],
  options: DownsampleOptions,
): Promise<WrittenFile> {
  const [path] = paths;
  if (path === undefined) throw new Error('no segment to thin out');
  return writeCompressed(path, options.owner, await thinLines(paths, options));
}

async function thinLines(
  paths: readonly string[],
  { windows, through, context, written }: DownsampleOptions,
): Promise<Iterable<Buffer>> {
  const contents = new RecordingContents({ points: POINTS, records: RECORDS, alike: ALIKE });
  const metrics = new Map<string, Metric>();
  const findings: Finding[] = [];
  let before: Seconds = 0;
  const decode = otlpDecoder({
    observation: (observation) => {
      if (observation.kind === 'event' && observation.name === EVENT.downsampled)
        before = Math.max(before, Number(observation.attributes?.[ATTR.downsampledWindow]) || 0);
      else contents.add(observation);
    },
    metric: (metric) => metrics.set(metric.name, metric),
    finding: (finding) => findings.push(finding),
    runStart: () => {},
    runEnd: () => {},
    unreadable: () => {},
  });
  for (const [i, path] of paths.entries()) {
    const one = written?.[i];
    const file = one === undefined ? path : await openWritten(path, one);
    const { error, leftOff } = await readLines(file, true, (line) => {
      decode(JSON.parse(line.toString('utf8')));
      return true;
    });
    // Written by us minutes ago: what cannot be read now is not thrown away.
    const why = error ?? leftOff;
    if (why !== null) throw new Error(`${path} cannot be read back: ${why}`);
  }
  const { firstAt: at = context.start.startedAt, lastAt = at } = contents;
  const window = Math.max(before, windowOf((lastAt - at) / windows));
  contents.downsample(window);
  const logs: LogSource[] = [
    { kind: 'run-start', start: context.start },
    {
      kind: 'event',
      at,
      name: EVENT.downsampled,
      severity: 'info',
      body: `one reading in ${formatSeconds(contents.window ?? window)} is kept, with the lowest and highest in between`,
      attributes: {
        [ATTR.downsampledWindow]: contents.window ?? window,
        [ATTR.downsampledThrough]: through,
        [ATTR.downsampledDropped]: contents.dropped,
      },
    },
    ...findings.map((finding): LogSource => ({ kind: 'finding', finding, at })),
  ];
  const known = new Map([...metrics, ...context.metrics]);
  return encoded(contents, logs, { ...context, metrics: known });
}

/** The next power of two, as all windows are: the longer ones hold whole shorter ones. */
function windowOf(length: Seconds): Seconds {
  return Math.max(2, 2 ** Math.ceil(Math.log2(Math.max(1, length))));
}

function* encoded(
  contents: RecordingContents,
  first: readonly LogSource[],
  context: EncodeContext,
): Iterable<Buffer> {
  const used = new Set<string>();
  for (const one of contents.all())
    if (one.kind === 'span' || one.kind === 'event')
      for (const id of stackIdsIn(one.attributes)) used.add(id);
  const encode = {
    logs: (items: readonly LogSource[]): OtlpPayload => encodeLogs(items, context),
    points: (items: readonly (Sample | Histogram)[]): OtlpPayload => encodeMetrics(items, context),
    spans: (items: readonly Span[]): OtlpPayload => encodeSpans(items, context),
  };
  // The run's start and what this file is stand first, each on its own line, as in every segment.
  for (const log of first) yield toLine(encode.logs([log]));
  const logs: LogSource[] = [];
  const points: (Sample | Histogram)[] = [];
  const spans: Span[] = [];
  for (const one of contents.all()) {
    if (one.kind === 'sample' || one.kind === 'histogram') points.push(one);
    else if (one.kind === 'span') spans.push(one);
    else if (one.kind !== 'stack' || used.has(one.id)) logs.push(one);
    if (logs.length >= LINE_POINTS) yield toLine(encode.logs(logs.splice(0)));
    if (points.length >= LINE_POINTS) yield toLine(encode.points(points.splice(0)));
    if (spans.length >= LINE_POINTS) yield toLine(encode.spans(spans.splice(0)));
  }
  if (logs.length > 0) yield toLine(encode.logs(logs));
  if (points.length > 0) yield toLine(encode.points(points));
  if (spans.length > 0) yield toLine(encode.spans(spans));
}
