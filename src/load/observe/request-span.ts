import type { RequestError, RequestRecord } from '../../core/load-types.ts';
import {
  GENAI,
  GENAI_OPERATION,
  providerOf,
  requestModel,
  requestSpanName,
} from '../../core/semconv-genai.ts';
import { LOAD_ATTR } from '../../core/semconv-load.ts';
import { printable } from '../../core/text.ts';
import type { Attributes, AttributeValue, Seconds, Span } from '../../core/types.ts';
import type { LoadPlan } from '../plan.ts';

/** Requests as spans: client spans of the generative AI conventions. What was said in them is not in there. */

/** A finish reason is a word; the answer may say anything. */
const REASON_LIMIT = 40;
const ID_LIMIT = 100;
const NAME_LIMIT = 200;

/** What all requests of a run have in common, as attributes of spans and metrics. */
export function endpointAttributes(plan: LoadPlan, engine: string | null): Attributes {
  const { endpoint, body } = plan;
  const { address } = endpoint;
  const host = address.kind === 'unix' ? address.path : hostOf(endpoint.authority);
  return {
    [GENAI.operationName]: GENAI_OPERATION[endpoint.api],
    [GENAI.providerName]: providerOf(host, engine),
    [GENAI.requestModel]: requestModel(body.model),
    [GENAI.serverAddress]: printable(host, NAME_LIMIT),
    ...(address.kind === 'tcp' ? { [GENAI.serverPort]: address.port } : {}),
  };
}

/** `host`, `host:port`, `[::1]:port` → the host without brackets. */
function hostOf(authority: string): string {
  const match = /^(?:\[([^\]]*)\]|([^:]*))(?::\d*)?$/.exec(authority);
  return match?.[1] ?? match?.[2] ?? authority;
}

/** `error.type`: the status of an answer that refused, else our own class; few different ones, whatever the server says. */
export function errorTypeOf(error: RequestError): string {
  const isStatus = error.class.startsWith('http.') && error.status !== null;
  return isStatus ? String(error.status) : error.class;
}

/** What spans of one run are made with. */
export interface SpanMaker {
  readonly plan: LoadPlan;
  /** Of {@link endpointAttributes}. */
  readonly endpoint: Attributes;
  /** CLOCK_MONOTONIC to Unix time. */
  readonly wall: (mono: Seconds) => Seconds;
}

/** The span of a request that is over, with the id that was sent. */
export function requestSpan(
  record: RequestRecord,
  identity: { readonly spanId: string; readonly sampled: boolean },
  { plan, endpoint, wall }: SpanMaker,
): Span {
  const { error, startedAt } = record;
  const to = Math.max(record.endedAt, startedAt);
  return {
    kind: 'span',
    name: requestSpanName(plan.endpoint.api, plan.body.model),
    from: wall(startedAt),
    to: wall(to),
    attributes: {
      ...endpoint,
      ...present(answerOf(record, plan)),
      ...present(loadOf(record, plan)),
    },
    context: { ...identity, role: 'client', failed: error !== null },
  };
}

type Optional = Readonly<Record<string, AttributeValue | null>>;

function answerOf(record: RequestRecord, plan: LoadPlan): Optional {
  const { error, startedAt, firstOutputAt } = record;
  return {
    [GENAI.requestStream]: plan.body.stream,
    [GENAI.responseId]: record.responseId === null ? null : printable(record.responseId, ID_LIMIT),
    [GENAI.finishReasons]:
      record.finishReason === null ? null : [printable(record.finishReason, REASON_LIMIT)],
    [GENAI.timeToFirstChunk]:
      plan.body.stream && firstOutputAt !== null ? firstOutputAt - startedAt : null,
    [GENAI.inputTokens]: record.inputTokens,
    [GENAI.outputTokens]: record.outputTokens,
    [GENAI.cacheReadTokens]: record.cachedTokens,
    [GENAI.reasoningTokens]: record.reasoningTokens,
    [GENAI.statusCode]: record.status,
    [GENAI.resendCount]: record.resends === 0 ? null : record.resends,
    [GENAI.errorType]: error === null ? null : errorTypeOf(error),
    [GENAI.conversationId]:
      record.session === null ? null : `${plan.runId}-${String(record.session)}`,
  };
}

function loadOf(record: RequestRecord, plan: LoadPlan): Optional {
  const { stage, startedAt, connectedAt } = record;
  return {
    [LOAD_ATTR.requestIndex]: record.index,
    [LOAD_ATTR.stageIndex]: stage,
    [LOAD_ATTR.stageName]: plan.stages[stage]?.label ?? null,
    [LOAD_ATTR.workerIndex]: record.worker,
    [LOAD_ATTR.turnIndex]: record.turn,
    [LOAD_ATTR.promptClass]: record.promptClass === '' ? null : record.promptClass,
    [LOAD_ATTR.warmup]: record.warmup ? true : null,
    [LOAD_ATTR.scheduleLag]: Math.max(0, startedAt - record.scheduledAt),
    [LOAD_ATTR.longestGap]: record.outputs > 1 ? record.longestGap : null,
    [LOAD_ATTR.outputCount]: record.outputs,
    [LOAD_ATTR.newConnection]: connectedAt === null ? null : true,
  };
}

function present(attributes: Optional): Attributes {
  return Object.fromEntries(
    Object.entries(attributes).filter((entry): entry is [string, AttributeValue] => {
      return entry[1] !== null;
    }),
  );
}
