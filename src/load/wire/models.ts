import { type ClientRequest, type IncomingMessage, request as httpRequest } from 'node:http';
import { request as httpsRequest } from 'node:https';
import { TraceError } from '../../core/errors.ts';
import { EXIT } from '../../core/exit-code.ts';
import { asArray, asObject } from '../../core/otlp-values.ts';
import { maskText } from '../../core/secrets/mask.ts';
import { printable } from '../../core/text.ts';
import type { Seconds } from '../../core/types.ts';
import { formatSeconds } from '../../core/units.ts';
import type { EndpointPlan } from '../plan.ts';
import { authorityOf, identityOf } from './dialer.ts';
import { socketFailure, statusFailure } from './failure.ts';

/** A list of models is a few kilobytes, of a proxy in front of hundreds of models some hundred. */
const MAX_BYTES = 4 * 1024 * 1024;

/**
 * Names of the models that the server has, as it lists them at `path` (`/v1/models`); untrusted text. Throws a TraceError that says what came
 * instead and what to do.
 */
export async function listModels(
  endpoint: EndpointPlan,
  path: string,
  timeout: Seconds,
): Promise<readonly string[]> {
  const where = `${printable(endpoint.url)} (GET ${printable(path)})`;
  let answer: { readonly status: number; readonly body: string };
  try {
    answer = await get(endpoint, path, timeout);
  } catch (error) {
    const cause = error instanceof Error ? error : new Error(String(error));
    const { class: kind, detail } = socketFailure(cause, 'connecting', null);
    throw problem('ERR_SERVER_UNREACHABLE', `${where} could not be asked: ${kind}: ${detail}`, {
      remedy:
        kind === 'tls'
          ? 'Trust its certificate with --cacert, or pass --insecure.'
          : 'Check that the server runs and that the URL is its.',
      cause,
    });
  }
  const { status, body } = answer;
  if (status === 401 || status === 403) {
    throw problem('ERR_SERVER_KEY', `${where} answered ${status}: it wants another API key`, {
      remedy: 'Pass --api-key, or set OPENAI_API_KEY.',
    });
  }
  if (status < 200 || status > 299) {
    const { detail } = statusFailure(status, body, null);
    throw problem('ERR_NO_MODELS', `${where} answered ${status}: ${detail}`, {
      remedy: 'Name the model with -m.',
    });
  }
  const models = modelsOf(body);
  if (models.length > 0) return models;
  const said = printable(maskText(body.slice(0, 1000)), 100);
  throw problem('ERR_NO_MODELS', `${where} lists no model: ${said}`, {
    remedy: 'Name the model with -m.',
  });
}

function problem(
  code: string,
  message: string,
  options: { readonly remedy: string; readonly cause?: unknown },
): TraceError {
  return new TraceError(code, message, { exitCode: EXIT.notFound, ...options });
}

/** OpenAI's `{"data":[{"id"}]}`. */
function modelsOf(body: string): string[] {
  let value: unknown;
  try {
    value = JSON.parse(body);
  } catch {
    return [];
  }
  const ids = asArray(asObject(value)?.['data']).map((model) => asObject(model)?.['id']);
  return ids.filter((id): id is string => typeof id === 'string' && id !== '');
}

/** Rejects when no whole answer came. */
function get(
  endpoint: EndpointPlan,
  path: string,
  timeout: Seconds,
): Promise<{ readonly status: number; readonly body: string }> {
  const { address, tls, authority } = endpoint;
  // What belongs to the body of a request is none of this one's.
  const headers = endpoint.headers.filter(([name]) => !/^(?:content|accept)/i.test(name));
  const options = {
    ...(address.kind === 'unix'
      ? { socketPath: address.path }
      : { host: address.host, port: address.port }),
    path,
    agent: false,
    headers: { accept: 'application/json', ...Object.fromEntries(headers), host: authority },
  };
  return new Promise((resolve, reject) => {
    const take = (response: IncomingMessage) => {
      const chunks: Buffer[] = [];
      let length = 0;
      response.on('data', (chunk: Buffer) => {
        length += chunk.length;
        if (length <= MAX_BYTES) chunks.push(chunk);
        else request.destroy(new Error(`an answer beyond ${MAX_BYTES} bytes`));
      });
      response.on('error', reject);
      response.on('end', () =>
        resolve({
          status: response.statusCode ?? 0,
          body: Buffer.concat(chunks).toString('utf8'),
        }),
      );
    };
    const request: ClientRequest =
      tls === null
        ? httpRequest(options, take)
        : httpsRequest({ ...options, ...authorityOf(tls), ...identityOf(tls) }, take);
    const timer = setTimeout(
      () => request.destroy(new Error(`no answer in ${formatSeconds(timeout)}`)),
      timeout * 1e3,
    );
    request.on('close', () => clearTimeout(timer));
    request.on('error', reject);
    request.end();
  });
}
