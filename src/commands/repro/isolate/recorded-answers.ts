import type { RecordedAnswer } from '../../../../repro/isolate/answering-stub.ts';
import { TraceError } from '../../../core/errors.ts';
import { EXIT } from '../../../core/exit-code.ts';
import { PROXY_ATTR, PROXY_SNAPSHOT, PROXY_SPAN } from '../../../core/semconv-proxy.ts';
import { printable } from '../../../core/text.ts';
import type { RecordingView } from '../../../core/types.ts';
import { isRecord } from '../../../core/record.ts';

/** Of one hop, or said anew by who answers. */
const NOT_AGAIN =
  /^(?:content-length|transfer-encoding|connection|keep-alive|te|trailer|upgrade|proxy-.*|date)$/i;
const NAME = /^[\w!#$%&'*+.^`|~-]+$/;
/** What a header's value may not hold. */
const CONTROL = /[^\t\x20-\x7e\x80-\xff]/;
const LEAST_STATUS = 200;
const MOST_STATUS = 599;

/** The whole answers in a recording of `trace proxy --capture-content`. Throws a TraceError when there are none. */
export function recordedAnswers(view: RecordingView, name: string): readonly RecordedAnswer[] {
  const statuses = new Map(
    view
      .spans(PROXY_SPAN.request)
      .map(({ attributes }) => [attributes[PROXY_ATTR.index], attributes[PROXY_ATTR.status]]),
  );
  const answers = view.snapshots(PROXY_SNAPSHOT.content).flatMap(({ body }) => {
    const status = isRecord(body) ? statuses.get(Number(body['index'])) : undefined;
    return typeof status === 'number' ? (answerOf(body, status) ?? []) : [];
  });
  if (answers.length === 0)
    throw new TraceError('ERR_NO_ANSWERS', `${printable(name)} holds no whole answers`, {
      exitCode: EXIT.unsupported,
      remedy: 'Record what is upstream: trace proxy --target <url> --capture-content',
    });
  return answers;
}

/** Recordings come from disk: null for what is no content of ours, or was cut. */
function answerOf(content: unknown, status: number): RecordedAnswer | null {
  if (!isRecord(content) || status < LEAST_STATUS || status > MOST_STATUS) return null;
  const { method, target, request, response } = content;
  if (typeof method !== 'string' || typeof target !== 'string') return null;
  if (!isRecord(request) || !isRecord(response) || response['cut'] === true) return null;
  const { body, encoding, headers } = response;
  if (!Array.isArray(headers) || (body !== null && typeof body !== 'string')) return null;
  const asked = request['body'];
  const isWhole = request['cut'] !== true && request['encoding'] === 'utf8';
  return {
    method,
    target,
    body: isWhole && typeof asked === 'string' ? asked : null,
    status,
    headers: headers.filter(isHeader).filter(([name]) => !NOT_AGAIN.test(name)),
    answer: Buffer.from(body ?? '', encoding === 'base64' ? 'base64' : 'utf8'),
  };
}

function isHeader(pair: unknown): pair is readonly [string, string] {
  if (!Array.isArray(pair) || pair.length !== 2) return false;
  const [name, value] = pair as readonly unknown[];
  return (
    typeof name === 'string' && NAME.test(name) && typeof value === 'string' && !CONTROL.test(value)
  );
}
