import {
  byteSpellings,
  CHAT_TEMPLATE,
  FEED_FORWARD,
  HEADS,
  HIDDEN,
  LAYERS,
  ones,
  randomTensors,
  silenceAllBut,
  type Tensor,
} from './tiny-llama.ts';

/**
 * A Llama of random weights as a Hugging Face folder, 4 MB: for a real vLLM, for Dynamo's mocker (which needs no weights but a tokenizer of
 * 2,000 tokens and more: it answers with the ids 1000 to 1999), and for load generators that want a tokenizer. Nothing is downloaded. The
 * formats: tokenizer.json of Hugging Face's tokenizers (byte-level BPE), safetensors (8 bytes of length, a JSON head, the numbers).
 */

const CONTEXT = 4096;
const SEED = 11;
const SPECIAL = ['<|pad|>', '<|bos|>', '<|eos|>', '<|im_start|>', '<|im_end|>'] as const;
const SYLLABLES = 'bdfgklmnprstvz'
  .split('')
  .flatMap((consonant) => 'aeiou'.split('').map((vowel) => consonant + vowel));
/** Words of two syllables; with what they are made of, 2,700 tokens. */
const WORDS = 2_300;
/** As byte-level BPE spells a space. */
const SPACE = 'Ġ';

/** The files of the folder by name: always the same bytes. */
export function tinyHuggingFace(): Readonly<Record<string, Buffer>> {
  const { vocabulary, merges } = words();
  const json = (value: unknown): Buffer => Buffer.from(JSON.stringify(value, null, 1));
  return {
    'tokenizer.json': json(tokenizer(vocabulary, merges)),
    'tokenizer_config.json': json({
      tokenizer_class: 'PreTrainedTokenizerFast',
      bos_token: SPECIAL[1],
      eos_token: SPECIAL[2],
      pad_token: SPECIAL[0],
      model_max_length: CONTEXT,
      chat_template: CHAT_TEMPLATE,
      clean_up_tokenization_spaces: false,
    }),
    'generation_config.json': json({ bos_token_id: 1, eos_token_id: 2, pad_token_id: 0 }),
    'config.json': json(configuration(vocabulary.length)),
    'model.safetensors': safetensors(weights(vocabulary)),
  };
}

/** Every byte, syllables, syllables behind a space, words behind a space, each made from the ones before by one merge. */
function words(): { vocabulary: readonly string[]; merges: readonly [string, string][] } {
  const merges: [string, string][] = [
    ...SYLLABLES.map((one): [string, string] => [one.slice(0, 1), one.slice(1)]),
    ...SYLLABLES.map((one): [string, string] => [SPACE, one]),
  ];
  const pairs = SYLLABLES.flatMap((first) => SYLLABLES.map((second) => [first, second] as const));
  for (const [first, second] of pairs.slice(0, WORDS)) merges.push([SPACE + first, second]);
  const vocabulary = [...SPECIAL, ...byteSpellings(), ...merges.map(([a, b]) => a + b)];
  return { vocabulary, merges };
}

function tokenizer(vocabulary: readonly string[], merges: readonly [string, string][]): object {
  const byteLevel = {
    type: 'ByteLevel',
    add_prefix_space: false,
    trim_offsets: true,
    use_regex: true,
  };
  return {
    version: '1.0',
    truncation: null,
    padding: null,
    added_tokens: SPECIAL.map((content, id) => ({
      id,
      content,
      single_word: false,
      lstrip: false,
      rstrip: false,
      normalized: false,
      special: true,
    })),
    normalizer: null,
    pre_tokenizer: byteLevel,
    post_processor: null,
    decoder: byteLevel,
    model: {
      type: 'BPE',
      dropout: null,
      unk_token: null,
      continuing_subword_prefix: null,
      end_of_word_suffix: null,
      fuse_unk: false,
      byte_fallback: false,
      ignore_merges: false,
      vocab: Object.fromEntries(vocabulary.map((word, id) => [word, id])),
      merges,
    },
  };
}

function configuration(vocabularySize: number): object {
  return {
    architectures: ['LlamaForCausalLM'],
    model_type: 'llama',
    vocab_size: vocabularySize,
    hidden_size: HIDDEN,
    intermediate_size: FEED_FORWARD,
    num_hidden_layers: LAYERS,
    num_attention_heads: HEADS,
    num_key_value_heads: HEADS,
    head_dim: HIDDEN / HEADS,
    max_position_embeddings: CONTEXT,
    rms_norm_eps: 1e-5,
    rope_theta: 10_000,
    hidden_act: 'silu',
    attention_bias: false,
    mlp_bias: false,
    tie_word_embeddings: false,
    bos_token_id: 1,
    eos_token_id: 2,
    pad_token_id: 0,
    torch_dtype: 'float32',
    initializer_range: 0.02,
    use_cache: true,
  };
}

/** Their sizes slowest first, as PyTorch counts. */
function weights(vocabulary: readonly string[]): readonly Tensor[] {
  const numbers = randomTensors(SEED);
  const head = numbers('lm_head.weight', vocabulary.length, HIDDEN);
  silenceAllBut(/^Ġ[a-z]{4}$/, vocabulary, head);
  const layer = (i: number): readonly Tensor[] => {
    const at = `model.layers.${i}`;
    return [
      ones(`${at}.input_layernorm.weight`),
      ...['q', 'k', 'v', 'o'].map((one) =>
        numbers(`${at}.self_attn.${one}_proj.weight`, HIDDEN, HIDDEN),
      ),
      ones(`${at}.post_attention_layernorm.weight`),
      numbers(`${at}.mlp.gate_proj.weight`, FEED_FORWARD, HIDDEN),
      numbers(`${at}.mlp.up_proj.weight`, FEED_FORWARD, HIDDEN),
      numbers(`${at}.mlp.down_proj.weight`, HIDDEN, FEED_FORWARD),
    ];
  };
  return [
    numbers('model.embed_tokens.weight', vocabulary.length, HIDDEN),
    ones('model.norm.weight'),
    head,
    ...Array.from({ length: LAYERS }, (_, i) => layer(i)).flat(),
  ];
}

function safetensors(tensors: readonly Tensor[]): Buffer {
  let at = 0;
  const entries = tensors.map(({ name, shape, data }) => {
    const from = at;
    at += data.byteLength;
    return [name, { dtype: 'F32', shape, data_offsets: [from, at] }] as const;
  });
  const head = JSON.stringify({ __metadata__: { format: 'pt' }, ...Object.fromEntries(entries) });
  const padded = Buffer.from(head.padEnd(Math.ceil(head.length / 8) * 8));
  const length = Buffer.alloc(8);
  length.writeBigUInt64LE(BigInt(padded.length));
  const numbers = tensors.map(({ data }) =>
    Buffer.from(data.buffer, data.byteOffset, data.byteLength),
  );
  return Buffer.concat([length, padded, ...numbers]);
}
