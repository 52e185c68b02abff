import { LINE_LIMIT } from './lines.ts';

/** Versions, and what else is told of the machine: from lists of names and values first, else from what people write. */

/** Lines of an environment that are read: `collect_env.py` prints 150, `pip freeze` 400. */
const LINES_LIMIT = 2000;
const VALUE_LIMIT = 80;

/** By what names each is known, normalized; where one has several, an earlier one counts. */
const NAMES: Readonly<Record<string, readonly string[]>> = {
  os: ['os', 'operating system'],
  python: ['python version', 'python'],
  torch: ['pytorch version', 'pytorch', 'torch'],
  cuda: [
    'cuda used to build pytorch',
    'cuda version',
    'cuda',
    'cuda runtime version',
    'cuda toolkit',
  ],
  driver: [
    'nvidia driver version',
    'cuda driver version',
    'driver version',
    'nvidia driver',
    'driver',
    'gpu driver',
  ],
  gpu: [
    'gpu 0',
    'gpu',
    'gpus',
    'gpu type',
    'gpu architecture',
    'gpu model',
    'gpu models and configuration',
  ],
  vllm: ['vllm version', 'vllm', 'ai dynamo vllm version', 'ai dynamo vllm'],
  sglang: ['sglang version', 'sglang'],
  dynamo: ['ai dynamo version', 'ai dynamo', 'dynamo version', 'dynamo'],
  dynamo_runtime: ['ai dynamo runtime version', 'ai dynamo runtime'],
  nixl: ['nixl version', 'nixl'],
  tensorrt_llm: ['tensorrt llm version', 'tensorrt llm', 'trtllm version', 'trtllm', 'trt llm'],
  transformers: ['transformers version', 'transformers'],
  triton: ['triton'],
  flashinfer: ['flashinfer python', 'flashinfer', 'flashinfer version'],
  nccl: ['nccl version', 'nccl', 'nvidia nccl cu12', 'nvidia nccl cu13'],
  node: ['node version', 'node.js version', 'node', 'node.js', 'nodejs'],
  kubernetes: ['kubernetes version', 'kubernetes', 'k8s', 'k8s version', 'eks', 'gke'],
};
const KEYS: ReadonlyMap<string, { readonly name: string; readonly rank: number }> = new Map(
  Object.entries(NAMES).flatMap(([name, keys]) =>
    keys.map((key, rank) => [key, { name, rank }] as const),
  ),
);

const VERSION = /(?:^|[\sv=:(/@-])(\d{1,4}(?:\.\d{1,6}){0,4}(?:[.+-]?[a-z][\w.+-]{0,40})?)/i;
/** What is told in words and not in numbers. */
const WORDS: ReadonlySet<string> = new Set(['os', 'gpu']);

const TOLD =
  /(?<![\w-])(ai-dynamo-runtime|ai-dynamo|dynamo|vllm|sglang|tensorrt[-_ ]llm|trt-?llm|pytorch|torch|transformers|triton|flashinfer(?:-python)?|nixl|nccl|python(?!3(?!\.\d))|cuda|(?:nvidia )?driver|node(?:\.js|js)?(?= ?v?\d{1,3}\.\d)|kubernetes|k8s|[egk]ks(?= v?1\.\d))(?:\[[\w,]{1,40}\])?(?:[ -]?(?:version|release|toolkit|runtime))?(?: is)?[ =:@(]{0,4}v?(\d{1,4}(?:\.\d{1,6}){0,4}(?:[.+-]?(?:post|rc|dev|a|b|cu|nightly)[\w.+]{0,30})?)(?![\w%]|\.\d)/gi;
/** `vllm/vllm-openai:v0.11.0`, `lmsysorg/sglang:v0.5.1-cu126`, `nvcr.io/nvidia/ai-dynamo/vllm-runtime:0.6.1`. */
const IMAGE =
  /(?:^|[\s`"'/])((?:vllm\/)?vllm-openai|(?:lmsysorg\/)?sglang|ai-dynamo\/[\w-]{1,40}|(?:vllm|sglang|tensorrtllm|trtllm)-runtime):v?(\d+\.\d+[\w.]{0,30})/gi;
const OS_TOLD =
  /\b(?:Ubuntu|Debian|CentOS(?: Stream)?|RHEL|Rocky Linux|Fedora|Amazon Linux|SLES)(?: Linux)? ?\d[\d.]*\d(?: LTS)?/i;
const GPU_TOLD =
  /\b(?:(?:GB|[HBA])[1-9]00|GB10|A10G?|A40|L40S?|L4|T4|V100|H20|H800|A800|RTX (?:PRO )?\d{4}(?: Ti| Blackwell)?|MI\d{3}X?|Gaudi ?\d)(?=s?\b)(?:[- ](?:SXM\d?|PCIe?|NVL)\b)?/;
/** A sentence about what was before is not about what is. */
const PAST =
  /\b(?:work(?:s|ed|ing)? (?:fine |well |ok )?(?:in|on|with|under)|used to|was fine|is fine|downgrad|roll(?:ed|ing)? back|fine (?:in|on|with))\b/i;

interface Piece {
  readonly kind: string;
  readonly field: string;
  readonly text: string;
}

/** `listed`: what stands under a heading of the environment; `told`: everything that may name a version. */
export function versionsIn(
  listed: readonly Piece[],
  told: readonly Piece[],
): Readonly<Record<string, string>> {
  const found = new Map<string, { readonly value: string; readonly rank: number }>();
  for (const { field, text } of listed) {
    const alone = field.startsWith('version:') ? field.slice('version:'.length) : null;
    for (const line of text.split('\n', LINES_LIMIT)) {
      const entry =
        alone === null
          ? entryOf(line.slice(0, LINE_LIMIT))
          : [alone, line.slice(0, LINE_LIMIT).trim()];
      if (entry !== null) take(found, entry[0] ?? '', entry[1] ?? '');
    }
  }
  const words = new Map<string, string>();
  for (const { text } of [...listed.filter(({ kind }) => kind === 'prose'), ...told])
    fromWords(text, words);
  for (const [name, value] of words) if (!found.has(name)) found.set(name, { value, rank: 0 });
  return Object.fromEntries([...found].map(([name, { value }]) => [name, value]));
}

function take(
  found: Map<string, { readonly value: string; readonly rank: number }>,
  key: string,
  text: string,
): void {
  const known = KEYS.get(normalized(key));
  if (known === undefined) return;
  const { name, rank } = known;
  const value = WORDS.has(name) ? wordsOf(text) : (VERSION.exec(text)?.[1] ?? null);
  if (value === null) return;
  const before = found.get(name);
  if (before === undefined || rank < before.rank) found.set(name, { value, rank });
}

function wordsOf(text: string): string | null {
  const value = text
    .replaceAll(/\*\*|`|^[_*]|[_*]$/g, '')
    .replace(/^\s*GPU \d+:/, '')
    .trim()
    .slice(0, VALUE_LIMIT);
  return value === '' || /^(?:n\/a|no response|could not collect|none|unknown)\b/i.test(value)
    ? null
    : value;
}

/** `PyTorch version : 2.6.0`, `[pip3] torch==2.4.0`, `torch 2.5.1`, `- **CUDA:** 12.4`, `GPU 0,1: NVIDIA H100`. */
function entryOf(line: string): readonly [string, string] | null {
  const text = line
    .replaceAll(/\*\*|[`|]/g, ' ')
    .replace(/^[\s>•*-]+/, '')
    .replace(/^\[(?:pip3|conda)\]\s*/, '');
  const equals = text.indexOf('==');
  const colon = text.search(/[:=]/);
  const at = equals !== -1 ? equals : colon;
  if (at > 0 && at < 60) return [text.slice(0, at), text.slice(at).replace(/^[:=\s]+/, '')];
  const gap = /^(\S[\w. -]{1,40}?)(?:\t| {2,}| v?(?=\d))\s*(\S.*)$/.exec(text);
  return gap === null ? null : [gap[1] ?? '', gap[2] ?? ''];
}

function normalized(key: string): string {
  return key
    .toLowerCase()
    .replaceAll(/\([^()]*\)/g, ' ')
    .replaceAll(/[-_\s]+/g, ' ')
    .replace(/^gpu 0(?:,\d+)*$/, 'gpu 0')
    .replace(/^(\d+ ?x ?)?gpus?$/, 'gpu')
    .trim();
}

/** The first that is told of each; of "from A to B", B. */
function fromWords(text: string, words: Map<string, string>): void {
  const set = (name: string, value: string | undefined): void => {
    if (value !== undefined && !words.has(name)) words.set(name, value);
  };
  for (const line of text.split('\n', LINES_LIMIT)) {
    const told = line.slice(0, LINE_LIMIT);
    for (const [, image = '', version] of told.matchAll(IMAGE)) set(imageName(image), version);
    set('os', OS_TOLD.exec(told)?.[0]);
    set('gpu', GPU_TOLD.exec(told)?.[0]);
    for (const sentence of told.replaceAll(IMAGE, ' ').split(/(?<=[.!?;])\s|,\s(?=but\b)/)) {
      if (PAST.test(sentence)) continue;
      for (const [whole, name = '', version, at] of matches(sentence)) {
        const known = KEYS.get(normalized(name.toLowerCase()))?.name;
        if (known === undefined) continue;
        const later = /^\s*(?:to|->|→)\s*v?(\d+(?:\.\d+)+[\w.]{0,20}?)(?=[\s,.;)]|$)/.exec(
          sentence.slice(at + whole.length),
        );
        set(known, later?.[1] ?? version?.replace(/\.$/, ''));
      }
    }
  }
}

function matches(
  sentence: string,
): readonly (readonly [string, string, string | undefined, number])[] {
  return [...sentence.matchAll(TOLD)].map(
    (match) => [match[0], match[1] ?? '', match[2], match.index] as const,
  );
}

function imageName(image: string): string {
  if (/^(?:vllm\/)?vllm-openai$/i.test(image)) return 'vllm';
  return /sglang$/i.test(image) && !image.includes('runtime') && !image.includes('ai-dynamo')
    ? 'sglang'
    : 'dynamo';
}

/** Whether a block is the output of a program that lists the environment, which is no log. */
export function isEnvironmentText(text: string): boolean {
  const begin = text.slice(0, 4000);
  return (
    (/^(?:Collecting environment information|PyTorch version\s*:|INFO \S{1,40} __init__\.py:\d+\] Automatically detected)/m.test(
      begin,
    ) &&
      /PyTorch version\s*:|CUDA (?:used|available)/m.test(begin)) ||
    /^\| NVIDIA-SMI /m.test(begin) ||
    /^Python: 3\.[^\n]*\n(?:[^\n]*\n){0,3}?GPU /m.test(begin)
  );
}
