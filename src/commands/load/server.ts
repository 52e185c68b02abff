import { TraceError } from '../../core/errors.ts';
import { EXIT } from '../../core/exit-code.ts';
import { printable } from '../../core/text.ts';
import type { Seconds } from '../../core/types.ts';
import type { EndpointPlan, LoadPlan } from '../../load/plan.ts';
import { tryConnect } from '../../platform/try-connect.ts';
import type { LoadOptions } from './options.ts';
import type { DraftPlan } from './plan.ts';

/** What only the server can tell before a run: whether it is there, and which model it has. */

/** A list of models is at hand; a server that is busy loading one may take its time. */
const MODELS_TIMEOUT: Seconds = 10;
const MODELS_SHOWN = 10;

/** The plan with the server's address and model in it. Throws a TraceError when it is not there or leaves the choice to us. */
export async function completePlan(draft: DraftPlan, options: LoadOptions): Promise<LoadPlan> {
  const address = await addressOf(options);
  return draft.complete(address, options.model ?? (await onlyModel(draft, options, address)));
}

async function addressOf({ endpoint, timeouts }: LoadOptions): Promise<EndpointPlan['address']> {
  if (endpoint.unix !== null) return { kind: 'unix', path: endpoint.unix };
  const { resolveAddress } = await import('../../load/wire/resolve.ts');
  const address = await resolveAddress(endpoint.host, endpoint.port);
  if (address.kind !== 'tcp') return address;
  const refused = await tryConnect(address.host, address.port, timeouts.connect);
  if (refused === null) return address;
  const at = `${printable(endpoint.host)}:${address.port}`;
  throw new TraceError('ERR_SERVER_UNREACHABLE', `${at} accepts no connection: ${refused}`, {
    exitCode: EXIT.notFound,
    remedy: 'Check that the server runs and that the URL is its.',
  });
}

async function onlyModel(
  draft: DraftPlan,
  { endpoint }: LoadOptions,
  address: EndpointPlan['address'],
): Promise<string> {
  if (endpoint.modelsPath === null) {
    throw new TraceError('ERR_NO_MODELS', `where ${endpoint.shown} lists its models is not known`, {
      exitCode: EXIT.usage,
      remedy: 'Name the model with -m.',
    });
  }
  const { listModels } = await import('../../load/wire/models.ts');
  const models = await listModels(draft.endpoint(address), endpoint.modelsPath, MODELS_TIMEOUT);
  const [only, another] = models;
  if (only !== undefined && another === undefined) return only;
  const shown = models.slice(0, MODELS_SHOWN).map((model) => printable(model, 80));
  const more = models.length > shown.length ? `, and ${models.length - shown.length} more` : '';
  throw new TraceError('ERR_MODEL_AMBIGUOUS', `the server has ${models.length} models`, {
    exitCode: EXIT.usage,
    remedy: `Name one with -m: ${shown.join(', ')}${more}`,
  });
}
