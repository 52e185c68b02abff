import type { LoadApi } from '../../core/load-types.ts';
import type { BodyPlan } from '../plan.ts';

/** Request bodies of the four APIs. */

/** What was said in a conversation, as OpenAI has it; other fields (tool calls, images) are passed on. */
export interface Message {
  readonly role: string;
  readonly content: unknown;
  readonly [field: string]: unknown;
}

/** What is asked: one text, or what was said so far. */
export type Ask = string | readonly Message[];

/** Writes bodies: what all of them say is made once. */
export class BodyWriter {
  readonly #api: LoadApi;
  readonly #limit: string | null;
  readonly #askName: string | null;
  /** Fields beside prompt and limit, without the braces. */
  readonly #rest: string;
  readonly #fields: Readonly<Record<string, unknown>>;

  constructor(plan: BodyPlan, api: LoadApi) {
    this.#api = api;
    // What --extra-body names is its own: a null there leaves the field out.
    const isOurs = (name: string) => !Object.hasOwn(plan.extra, name);
    const limits = limitNames(plan, api);
    this.#limit = limits !== null && limits.every(isOurs) ? (limits[0] ?? null) : null;
    const ask = {
      chat: 'messages',
      completions: 'prompt',
      responses: 'input',
      embeddings: 'input',
    }[api];
    this.#askName = isOurs(ask) ? ask : null;
    this.#fields = fieldsOf(plan, api);
    this.#rest = JSON.stringify(this.#fields).slice(1, -1);
  }

  /** A body that asks this, and for at most so many tokens. */
  write(ask: Ask, outputTokens: number | null): Buffer {
    const parts = [this.#rest];
    if (this.#limit !== null && outputTokens !== null)
      parts.push(`"${this.#limit}":${outputTokens}`);
    if (this.#askName !== null) parts.push(`"${this.#askName}":${this.#asked(ask)}`);
    return Buffer.from(`{${parts.filter((part) => part !== '').join(',')}}`);
  }

  /** A body that the data hold as a whole: ours decide how it is answered, `--extra-body` decides last. */
  complete(body: Readonly<Record<string, unknown>>): Buffer {
    const { model, ...ours } = this.#fields;
    return Buffer.from(JSON.stringify({ model, ...body, ...ours }));
  }

  #asked(ask: Ask): string {
    if (this.#api === 'chat') {
      return typeof ask === 'string'
        ? `[{"role":"user","content":${JSON.stringify(ask)}}]`
        : JSON.stringify(ask);
    }
    // Both take messages as they are said, and a text.
    if (this.#api === 'responses') return JSON.stringify(ask);
    return JSON.stringify(typeof ask === 'string' ? ask : ask.map(textOf).join('\n'));
  }
}

/** What the limit is called, and what else it may be called: null where there is none. */
function limitNames(plan: BodyPlan, api: LoadApi): readonly string[] | null {
  switch (api) {
    case 'chat':
      return plan.outputLimit === 'max_completion_tokens'
        ? ['max_completion_tokens', 'max_tokens']
        : ['max_tokens', 'max_completion_tokens'];
    case 'completions':
      return ['max_tokens'];
    case 'responses':
      return ['max_output_tokens'];
    case 'embeddings':
      return null;
  }
}

function fieldsOf(plan: BodyPlan, api: LoadApi): Readonly<Record<string, unknown>> {
  const fields: Record<string, unknown> = { model: plan.model };
  if (api !== 'embeddings') {
    fields['stream'] = plan.stream;
    // Of Responses the last event has the usage in any case.
    if (plan.stream && api !== 'responses') fields['stream_options'] = { include_usage: true };
    if (plan.ignoreEos) fields['ignore_eos'] = true;
  }
  for (const [name, value] of Object.entries(plan.extra)) {
    if (value === null) delete fields[name];
    else fields[name] = value;
  }
  return fields;
}

/** The text of a message; of one in parts, its text parts. */
export function textOf({ content }: Message): string {
  if (typeof content === 'string') return content;
  if (!Array.isArray(content)) return '';
  return content
    .map((part: unknown) =>
      typeof part === 'object' && part !== null && 'text' in part && typeof part.text === 'string'
        ? part.text
        : '',
    )
    .join('');
}
