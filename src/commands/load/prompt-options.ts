import { basename } from 'node:path';
import { usageError } from '../../core/errors.ts';
import { printable } from '../../core/text.ts';
import type { LoadApi } from '../../core/load-types.ts';
import type { PromptClass, PromptPlan } from '../../load/plan.ts';
import { LONGEST } from './arrivals.ts';
import { DATASET_ORDERS } from './usage.ts';
import { contradiction, type LoadValues } from './values.ts';
import { parseChoice, parseCount, parseDecimal } from '../command-line/parse.ts';

/** What is asked of the model: the prompts of a run from its flags. */

/** Tokens of a synthetic prompt and of its answer: a chat with some history. */
export const DEFAULT_ISL = 512;
export const DEFAULT_OSL = 128;
/** A prompt of 16 million tokens is 100 MB of JSON. */
const MOST_TOKENS = 16_000_000;
const MOST_CLASSES = 100;
const MOST_TURNS = 1000;

type Prompts = PromptClass['prompts'];
type Synthetic = Extract<Prompts, { kind: 'synthetic' }>;

/** Lengths and prefixes that hold for each class which does not say otherwise. */
interface Defaults {
  readonly synthetic: Synthetic;
  /** As asked for; null leaves the data's own limit, and then the server's. */
  readonly outputTokens: number | null;
  readonly order: Extract<Prompts, { kind: 'file' }>['order'];
}

export function parsePrompts(values: LoadValues, api: LoadApi): PromptPlan {
  const kind = values.oneOf(['dataset', 'mix', 'replay']);
  if (api === 'embeddings' && values.has('osl')) {
    throw usageError('--osl: embeddings have no output tokens');
  }
  const defaults = chooseDefaults(values, api);
  const turns = values.count('turns', 1, MOST_TURNS) ?? 1;
  if (turns > 1 && api === 'embeddings') throw contradiction('--turns', '--api embeddings');
  if (values.has('think-time') && turns === 1) {
    throw usageError('--think-time is the pause between turns', 'Add --turns.');
  }
  const checkNonce = values.isSet('check-nonce');
  // A conversation repeats its earlier marks; embeddings repeat nothing.
  if (checkNonce && turns > 1) throw contradiction('--check-nonce', '--turns');
  if (checkNonce && api === 'embeddings') throw contradiction('--check-nonce', '--api embeddings');
  return {
    classes: classesOf(kind, values, defaults),
    turns,
    thinkTime: values.duration('think-time', 0, LONGEST) ?? 0,
    ...(checkNonce ? { checkNonce } : {}),
  };
}

function classesOf(
  kind: 'dataset' | 'mix' | 'replay' | null,
  values: LoadValues,
  defaults: Defaults,
): readonly PromptClass[] {
  if (kind === null) return [{ name: '', weight: 1, prompts: defaults.synthetic }];
  if (kind === 'mix') return mixOf(values.texts('mix'), defaults);
  for (const flag of ['isl', 'isl-stddev', 'range-ratio'] as const) {
    if (values.has(flag)) throw contradiction(`--${flag}`, `--${kind}`);
  }
  // The times of a replay are in the order of the file.
  const order = kind === 'replay' ? 'once' : defaults.order;
  const file = fileOf(values.text(kind) ?? '', { ...defaults, order });
  return [{ name: '', weight: 1, prompts: file }];
}

function chooseDefaults(values: LoadValues, api: LoadApi): Defaults {
  const inputTokens = values.count('isl', 1, MOST_TOKENS) ?? DEFAULT_ISL;
  const asked = values.count('osl', 1, MOST_TOKENS);
  const outputTokens = api === 'embeddings' ? null : (asked ?? DEFAULT_OSL);
  const ratio = values.decimal('range-ratio', 0, 1);
  for (const flag of ['isl-stddev', 'osl-stddev'] as const) {
    if (ratio !== null && values.has(flag))
      throw contradiction('--random-range-ratio', `--${flag}`);
  }
  const order = values.text('dataset-order');
  return {
    synthetic: {
      kind: 'synthetic',
      inputTokens,
      inputDeviation: values.decimal('isl-stddev', 0, MOST_TOKENS) ?? (ratio ?? 0) * inputTokens,
      outputTokens,
      outputDeviation:
        values.decimal('osl-stddev', 0, MOST_TOKENS) ?? (ratio ?? 0) * (outputTokens ?? 0),
      prefixTokens: values.count('prefix-tokens', 0, MOST_TOKENS) ?? 0,
      prefixes: values.count('prefixes', 1, 1_000_000) ?? 1,
      ...(ratio === null ? {} : { spread: 'uniform' as const }),
    },
    outputTokens: asked,
    order: order === null ? 'sequential' : parseChoice(order, DATASET_ORDERS, '--dataset-order'),
  };
}

function fileOf(path: string, { outputTokens, order }: Defaults): Prompts {
  return { kind: 'file', path, order, outputTokens };
}

/** Each `--mix [name=]weight:prompts`, where prompts is a file or `isl=512,osl=64`. */
function mixOf(texts: readonly string[], defaults: Defaults): readonly PromptClass[] {
  if (texts.length > MOST_CLASSES) throw usageError(`--mix at most ${MOST_CLASSES} times`);
  const classes = texts.map((text) => {
    const [, name, weight = '', prompts = ''] =
      /^(?:([\w.-]+)=)?(\d[\d.]*):(.+)$/.exec(text.trim()) ?? [];
    if (prompts === '') {
      throw usageError(
        `--mix takes [name=]weight:prompts, got '${printable(text, 60)}'`,
        "Such as --mix 3:chat.jsonl --mix 'long=1:isl=4096,osl=64'.",
      );
    }
    const isSynthetic = /^(?:isl|osl|isl-stddev|osl-stddev|prefix-tokens|prefixes)=/.test(prompts);
    return {
      name: name ?? (isSynthetic ? prompts : basename(prompts)),
      weight: parseDecimal(weight, { flag: '--mix', least: 0.000001, most: 1e6 }),
      prompts: isSynthetic ? syntheticOf(prompts, defaults.synthetic) : fileOf(prompts, defaults),
    };
  });
  const names = classes.map(({ name }) => name);
  const twice = names.find((name, at) => names.indexOf(name) !== at);
  if (twice !== undefined) {
    throw usageError(
      `--mix has two classes '${printable(twice, 40)}'`,
      'Name them: --mix name=3:file.',
    );
  }
  return classes;
}

function syntheticOf(text: string, defaults: Synthetic): Synthetic {
  const synthetic: Record<string, unknown> & Synthetic = { ...defaults };
  const fields: Readonly<Record<string, keyof Synthetic>> = {
    isl: 'inputTokens',
    'isl-stddev': 'inputDeviation',
    osl: 'outputTokens',
    'osl-stddev': 'outputDeviation',
    'prefix-tokens': 'prefixTokens',
    prefixes: 'prefixes',
  };
  for (const piece of text.split(',')) {
    const [name = '', value = ''] = piece.split('=');
    const key = fields[name.trim()];
    if (key === undefined) {
      throw usageError(
        `--mix takes ${Object.keys(fields).join(', ')}, got '${printable(piece, 40)}'`,
      );
    }
    const rule = { flag: `--mix ${name}`, least: name.endsWith('stddev') ? 0 : 1 } as const;
    Object.assign(synthetic, {
      [key]: parseCount(value, { ...rule, most: MOST_TOKENS }),
    });
  }
  return synthetic;
}
