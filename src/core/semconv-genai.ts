import type { LoadApi } from './load-types.ts';
import { printable } from './text.ts';
import type { Metric } from './types.ts';

/**
 * OpenTelemetry's names for calls of generative models, as a client emits them, in two profiles: `stable` is the last release that held them
 * (semantic conventions v1.41.1), `next` what open-telemetry/semantic-conventions-genai prepares since they moved there. The `gen_ai.server.*`
 * metrics are the model server's own: a client must not emit them.
 */

export type GenAiProfile = 'stable' | 'next';

/** Value of OTEL_SEMCONV_STABILITY_OPT_IN (a comma-separated list) that asks for `next`. */
export const GENAI_OPT_IN = 'gen_ai_latest_experimental';

/** The profile that the environment asks for. */
export function genAiProfileOf(env: Readonly<Record<string, string | undefined>>): GenAiProfile {
  const asked = (env['OTEL_SEMCONV_STABILITY_OPT_IN'] ?? '').split(',').map((name) => name.trim());
  return asked.includes(GENAI_OPT_IN) ? 'next' : 'stable';
}

/** The same in both profiles. */
export const GENAI = {
  operationName: 'gen_ai.operation.name',
  providerName: 'gen_ai.provider.name',
  requestModel: 'gen_ai.request.model',
  requestStream: 'gen_ai.request.stream',
  requestMaxTokens: 'gen_ai.request.max_tokens',
  responseId: 'gen_ai.response.id',
  finishReasons: 'gen_ai.response.finish_reasons',
  timeToFirstChunk: 'gen_ai.response.time_to_first_chunk',
  conversationId: 'gen_ai.conversation.id',
  inputTokens: 'gen_ai.usage.input_tokens',
  outputTokens: 'gen_ai.usage.output_tokens',
  cacheReadTokens: 'gen_ai.usage.cache_read.input_tokens',
  reasoningTokens: 'gen_ai.usage.reasoning.output_tokens',
  tokenType: 'gen_ai.token.type',
  errorType: 'error.type',
  serverAddress: 'server.address',
  serverPort: 'server.port',
  statusCode: 'http.response.status_code',
  resendCount: 'http.request.resend_count',
} as const;

/** Values of `gen_ai.operation.name`; the Responses API is a chat to the conventions. */
export const GENAI_OPERATION: Readonly<Record<LoadApi, string>> = {
  chat: 'chat',
  responses: 'chat',
  completions: 'text_completion',
  embeddings: 'embeddings',
};

/** Models have names of any length. */
const MODEL_LIMIT = 200;

/** `gen_ai.request.model`, as it may be shown. */
export function requestModel(model: string): string {
  return printable(model, MODEL_LIMIT);
}

/** What spans of requests are called: `{gen_ai.operation.name} {gen_ai.request.model}`. */
export function requestSpanName(api: LoadApi, model: string): string {
  return `${GENAI_OPERATION[api]} ${requestModel(model)}`;
}

/** `gen_ai.provider.name` of a server that speaks OpenAI's protocol and does not say what it is. */
export const UNKNOWN_PROVIDER = 'openai_compatible';

/** `gen_ai.provider.name`: `openai` only for OpenAI itself, else the engine where it is known. */
export function providerOf(host: string, engine: string | null): string {
  return host === 'api.openai.com' ? 'openai' : (engine ?? UNKNOWN_PROVIDER);
}

/** The histograms of requests, one point a request but for `chunk`, which has one for each gap. */
export interface GenAiMetrics {
  readonly duration: Metric;
  readonly firstChunk: Metric;
  readonly chunk: Metric;
  /** Tokens of a request: two metrics, or one that `gen_ai.token.type` divides. */
  readonly tokens: Readonly<Record<'input' | 'output', Metric>>;
}

function histogram(name: string, unit: string, description: string): Metric {
  return { name, unit, instrument: 'histogram', description };
}

const TOKEN_USAGE = histogram('gen_ai.client.token.usage', '{token}', 'tokens of a request');

/** Metrics by profile. `next` has no `operation.duration` for inference any more. */
export const GENAI_METRICS: Readonly<Record<GenAiProfile, GenAiMetrics>> = {
  stable: {
    duration: histogram('gen_ai.client.operation.duration', 's', 'from sending to the end'),
    firstChunk: histogram(
      'gen_ai.client.operation.time_to_first_chunk',
      's',
      'from sending to the first output',
    ),
    chunk: histogram(
      'gen_ai.client.operation.time_per_output_chunk',
      's',
      'between one output and the next',
    ),
    tokens: { input: TOKEN_USAGE, output: TOKEN_USAGE },
  },
  next: {
    duration: histogram('gen_ai.client.inference.duration', 's', 'from sending to the end'),
    firstChunk: histogram(
      'gen_ai.client.inference.time_to_first_chunk',
      's',
      'from sending to the first output',
    ),
    chunk: histogram(
      'gen_ai.client.inference.time_per_output_chunk',
      's',
      'between one output and the next',
    ),
    tokens: {
      input: histogram(
        'gen_ai.client.inference.operation.input_tokens',
        '{token}',
        'input tokens of a request',
      ),
      output: histogram(
        'gen_ai.client.inference.operation.output_tokens',
        '{token}',
        'output tokens of a request',
      ),
    },
  },
};
