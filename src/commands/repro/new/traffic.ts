import type { LoadApi } from '../../../core/load-types.ts';
import { TraceError } from '../../../core/errors.ts';
import { EXIT } from '../../../core/exit-code.ts';
import { GENAI, requestSpanName } from '../../../core/semconv-genai.ts';
import { LOAD_ATTR } from '../../../core/semconv-load.ts';
import { printable } from '../../../core/text.ts';
import type { RecordingView, Span } from '../../../core/types.ts';
import { BodyWriter } from '../../../load/prompts/body.ts';
import { STREAM } from '../../../load/prompts/random.ts';
import { words } from '../../../load/prompts/synthetic.ts';
import type {
  Oracle,
  TrafficOrigin,
  TrafficRequest,
} from '../../../../repro/parameters/parameters.ts';
import { proxyTraffic } from './proxy-traffic.ts';
import { recordedUrl } from './recorded-url.ts';

/** The requests of a recording of `trace load`, to be sent again. What was said in them was not kept: prompts of equal length are made up. */

/** More make a script slow to read and tell no more; the first are taken. */
const MOST_REQUESTS = 1000;
/** Of a request whose length the server did not say. */
const USUAL_TOKENS = 64;
const MOST_TOKENS = 200_000;
const APIS: readonly LoadApi[] = ['chat', 'completions', 'responses', 'embeddings'];

const PATHS: Readonly<Record<LoadApi, string>> = {
  chat: '/v1/chat/completions',
  completions: '/v1/completions',
  responses: '/v1/responses',
  embeddings: '/v1/embeddings',
};

/** Throws a TraceError when the recording holds no requests. */
export function trafficOf(
  view: RecordingView,
  oracle: Oracle,
  {
    name,
    isWanted = () => true,
  }: { readonly name: string; readonly isWanted?: (span: Span) => boolean },
): TrafficOrigin {
  if (view.start.command === 'proxy') {
    const traffic = proxyTraffic(view, { oracle, most: MOST_REQUESTS });
    if (traffic.requests.length === 0) throw noRequests(name, 'none passed');
    if (oracle.kind === 'cross-talk' && !traffic.requests.some(hasMark))
      throw noRequests(name, 'none asks a model, which could repeat a mark (--oracle cross-talk)');
    return traffic;
  }
  const { url, api: named, model, seed } = view.start.settings;
  const api = APIS.find((one) => one === named);
  if (typeof url !== 'string' || api === undefined || typeof model !== 'string')
    throw noRequests(name, 'it is no recording of trace load or trace proxy');
  const spans = requestSpans(view).filter(isWanted).slice(0, MOST_REQUESTS);
  const [first] = spans;
  if (first === undefined) throw noRequests(name, 'no request was recorded as a span');
  const { base, path } = addressOf(recordedUrl(view), api);
  const write = bodyMaker({ api, model, oracle, seed: typeof seed === 'number' ? seed : 1 });
  return {
    base_url: base,
    requests: spans.map((span, index) => ({
      offset_s: Number((span.from - first.from).toFixed(4)),
      method: 'POST',
      path,
      headers: { 'Content-Type': 'application/json' },
      body: write(span, index),
    })),
  };
}

/** The requests of a recording of `trace load` but those of its warm-up, by when they were sent; none of another recording. */
export function requestSpans(view: RecordingView): readonly Span[] {
  const { api: named, model } = view.start.settings;
  const api = APIS.find((one) => one === named);
  if (api === undefined || typeof model !== 'string') return [];
  return view
    .spans(requestSpanName(api, model))
    .filter(({ attributes }) => attributes[LOAD_ATTR.warmup] !== true)
    .toSorted((a, b) => a.from - b.from);
}

function hasMark({ body }: TrafficRequest): boolean {
  return body?.includes('{nonce}') === true;
}

function bodyMaker(made: {
  readonly api: LoadApi;
  readonly model: string;
  readonly oracle: Oracle;
  readonly seed: number;
}): (span: Span, index: number) => string {
  const { api, model, oracle, seed } = made;
  const writer = (stream: boolean) =>
    new BodyWriter({ model, stream, ignoreEos: false, extra: { temperature: 0 } }, api);
  const writers = { streamed: writer(true), whole: writer(false) };
  return ({ attributes }, index) => {
    const count = (key: string, usual: number | null) => {
      const value = attributes[key];
      return typeof value === 'number' ? Math.min(value, MOST_TOKENS) : usual;
    };
    const text = words(seed, STREAM.words, index, count(GENAI.inputTokens, USUAL_TOKENS) ?? 1);
    // A model asked to repeat its mark says whose answer it is.
    const ask = oracle.kind === 'cross-talk' ? `Repeat {nonce}. ${text}` : text;
    const which = attributes[GENAI.requestStream] === true ? 'streamed' : 'whole';
    return writers[which].write(ask, count(GENAI.outputTokens, null)).toString('utf8');
  };
}

/** Without credentials, which are not to be given to others. */
function addressOf(url: URL, api: LoadApi): { readonly base: string; readonly path: string } {
  const path = url.pathname.replace(/\/$/, '');
  const ending = PATHS[api];
  const isWhole = path.endsWith(ending.slice('/v1'.length));
  const whole = isWhole
    ? path
    : `${path}${path.endsWith('/v1') ? ending.slice('/v1'.length) : ending}`;
  return { base: url.origin, path: whole };
}

function noRequests(name: string, why: string): TraceError {
  return new TraceError('ERR_NO_TRAFFIC', `${printable(name)} holds no requests: ${why}`, {
    exitCode: EXIT.unsupported,
    remedy: 'Give a recording of trace load or trace proxy, or a function with --call.',
  });
}
