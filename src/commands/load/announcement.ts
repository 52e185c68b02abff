import { printable } from '../../core/text.ts';
import type { PromptClass } from '../../load/plan.ts';
import { SCHEMA_VERSION } from '../../report/report.ts';
import { formatCount, formatSeconds } from '../../core/units.ts';
import type { LoadExtent } from './extent.ts';
import type { LoadOptions } from './options.ts';
import { writeDuration } from '../../core/duration.ts';

/** What will be sent, and where to, in some lines of text: before a run, for --yes, and all that --dry-run does. */

interface Line {
  readonly label: string;
  readonly text: string;
}

const LABEL_WIDTH = 9;
const STAGES_SHOWN = 12;

/** `model`: null when the server is asked for the only one that it has. */
export function announcementLines(
  options: LoadOptions,
  extent: LoadExtent,
  model: string | null,
): readonly string[] {
  const { endpoint } = options;
  const lines: readonly Line[] = [
    { label: 'to', text: `POST ${printable(endpoint.shown, 300)}${keyText(options)}` },
    {
      label: 'model',
      text: model === null ? 'the only one that the server lists' : printable(model),
    },
    { label: 'load', text: loadText(options) },
    { label: 'prompts', text: promptText(options) },
    { label: 'in all', text: totalText(options, extent) },
  ];
  return lines.map(({ label, text }) => `${label.padEnd(LABEL_WIDTH)} ${text}`);
}

/** The same as one JSON document. Nothing in it is a secret: no header, no key, no value of a query, no body. */
export function announcementDocument(
  options: LoadOptions,
  extent: LoadExtent,
  concerns: readonly string[],
): string {
  const { endpoint, stages, prompts, model, stream } = options;
  return `${JSON.stringify(
    {
      schema_version: SCHEMA_VERSION,
      command: 'load',
      dry_run: true,
      url: endpoint.shown,
      api: endpoint.api,
      model,
      streaming: stream,
      stages: stages.map(({ label, arrival, duration, requests, maxConcurrency }) => ({
        label,
        kind: arrival.kind,
        duration_s: duration,
        requests,
        max_concurrency: maxConcurrency,
      })),
      prompts: prompts.classes.map((one) => ({
        name: one.name,
        weight: one.weight,
        text: classText(one.prompts),
      })),
      turns: prompts.turns,
      requests: extent.requests,
      streams: Number.isFinite(extent.streams) ? extent.streams : null,
      duration_s: extent.seconds,
      input_tokens: extent.inputTokens,
      output_tokens: extent.outputTokens,
      needs_yes: concerns,
    },
    null,
    2,
  )}\n`;
}

/** One line of the same, for the beginning of a run that needs no confirmation. */
export function announcement(options: LoadOptions, model: string): string {
  const { endpoint, stages } = options;
  const what = stages.length === 1 ? loadText(options) : `${stages.length} stages`;
  return `${what} to ${printable(endpoint.shown, 200)}, model ${printable(model, 80)}, ${promptText(options)}`;
}

const KEYS = {
  flag: ', with the key of --api-key',
  environment: ', with the key in OPENAI_API_KEY',
  header: ', with the Authorization of -H',
  url: ', with the user in the URL',
} as const;

function keyText({ endpoint }: LoadOptions): string {
  return endpoint.key === null ? '' : KEYS[endpoint.key];
}

function loadText({ stages }: LoadOptions): string {
  const texts = stages.map(({ label, arrival, duration, requests, maxConcurrency }) => {
    const shape =
      arrival.kind === 'open' && arrival.burstiness !== null
        ? arrival.burstiness === 1
          ? ' (Poisson)'
          : ` (gamma ${arrival.burstiness})`
        : '';
    const limit = maxConcurrency === null ? '' : ` at most ${maxConcurrency} at once`;
    const length = [
      ...(duration === null ? [] : [writeDuration(duration)]),
      ...(requests === null ? [] : [`${formatCount(requests)} requests`]),
    ];
    const until = length.length === 0 ? '' : ` for ${length.join(' or ')}`;
    return `${label}${shape}${limit}${until}`;
  });
  const shown = texts.slice(0, STAGES_SHOWN).join(', ');
  return texts.length > STAGES_SHOWN ? `${shown}, and ${texts.length - STAGES_SHOWN} more` : shown;
}

function promptText({ prompts, stream, endpoint }: LoadOptions): string {
  const classes = prompts.classes.map(({ name, weight, prompts: one }) => {
    const share = prompts.classes.length === 1 ? '' : `${weight} x `;
    const called = share === '' || namesItself(name, one) ? '' : `${printable(name, 40)}: `;
    return `${share}${called}${classText(one)}`;
  });
  const turns = prompts.turns === 1 ? '' : `, ${prompts.turns} turns a conversation`;
  const whole = stream || endpoint.api === 'embeddings' ? '' : ', not streamed';
  return `${classes.join('; ')}${turns}${whole}`;
}

/** A class that nobody named is called by what it is. */
function namesItself(name: string, prompts: PromptClass['prompts']): boolean {
  return prompts.kind === 'file' ? prompts.path.endsWith(name) : name.includes('=');
}

function classText(prompts: PromptClass['prompts']): string {
  if (prompts.kind === 'file') {
    const limit = prompts.outputTokens === null ? '' : `, ${prompts.outputTokens} tokens out`;
    return `${printable(prompts.path, 100)}${limit}`;
  }
  const spread = (deviation: number) => (deviation === 0 ? '' : `±${Math.round(deviation)}`);
  const prefix =
    prompts.prefixTokens === 0
      ? ''
      : ` after ${prompts.prefixTokens} shared (of ${prompts.prefixes})`;
  const out =
    prompts.outputTokens === null
      ? ''
      : `, ${prompts.outputTokens}${spread(prompts.outputDeviation)} out`;
  return `about ${prompts.inputTokens}${spread(prompts.inputDeviation)} tokens in${prefix}${out}`;
}

function totalText(options: LoadOptions, extent: LoadExtent): string {
  const { requests, warmup, seconds, inputTokens, outputTokens } = extent;
  const many =
    requests === null
      ? 'as many requests as are answered'
      : `${formatCount(requests)} requests${warmup === 0 ? '' : ` and ${formatCount(warmup)} to warm up`}`;
  const time = seconds === null ? '' : ` in ${formatSeconds(seconds)}`;
  const tokens = (one: number | null): string | null =>
    one === null || requests === null ? null : formatCount(Math.round(one * (requests + warmup)));
  const [input, output] = [tokens(inputTokens), tokens(outputTokens)];
  const sums = [
    ...(input === null ? [] : [`about ${input} tokens in`]),
    ...(output === null ? [] : [`at most ${output} out`]),
  ];
  const streams =
    extent.streams > 0 && Number.isFinite(extent.streams)
      ? `, up to ${formatCount(extent.streams)} streams at once`
      : '';
  const share =
    options.part.of > 1 ? ` (part ${options.part.index + 1} of ${options.part.of})` : '';
  return `${many}${time}${sums.length === 0 ? '' : `, ${sums.join(', ')}`}${streams}${share}`;
}
