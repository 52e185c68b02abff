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
 * A Llama of random weights as a GGUF file of 1.6 MB, for a real llama-server: it streams letters without sense until it is told to stop.
 * Nothing is downloaded. The format: ggml/docs/gguf.md of llama.cpp, version 3.
 */

/** Positions that it was "trained" for; the server divides them among its slots. */
const CONTEXT = 8192;
const SEED = 7;
const ALIGNMENT = 32;
const SPECIAL: readonly string[] = ['<|bos|>', '<|eos|>', '<|im_start|>', '<|im_end|>'];

/** Numbers of GGUF's value types. */
const TYPE = { uint32: 4, int32: 5, float32: 6, bool: 7, string: 8, array: 9 } as const;

/** The bytes of the file: always the same. */
export function tinyModel(): Buffer {
  const words = vocabulary();
  const values = metadata(words);
  const all = tensors(words);
  const head = Buffer.concat([
    Buffer.from('GGUF'),
    uint32(3),
    uint64(all.length),
    uint64(values.length),
    ...values,
    ...tensorTable(all),
  ]);
  return Buffer.concat([
    aligned(head),
    ...all.map(({ data }) => aligned(Buffer.from(data.buffer, data.byteOffset, data.byteLength))),
  ]);
}

/** One token a byte, as GPT-2 spells them, one pair that merges, because a tokenizer without merges is refused, and the special ones. */
function vocabulary(): readonly string[] {
  return [...SPECIAL, ...byteSpellings(), 'th'];
}

function metadata(words: readonly string[]): readonly Buffer[] {
  const number = (key: string, value: number): Buffer =>
    Buffer.concat([text(key), uint32(TYPE.uint32), uint32(value)]);
  const float = (key: string, value: number): Buffer =>
    Buffer.concat([text(key), uint32(TYPE.float32), float32(value)]);
  const string = (key: string, value: string): Buffer =>
    Buffer.concat([text(key), uint32(TYPE.string), text(value)]);
  const list = (key: string, type: number, items: readonly Buffer[]): Buffer =>
    Buffer.concat([text(key), uint32(TYPE.array), uint32(type), uint64(items.length), ...items]);
  const kinds = words.map((_, id) => uint32(id < SPECIAL.length ? 3 : 1));
  return [
    string('general.architecture', 'llama'),
    string('general.name', 'tiny'),
    number('llama.context_length', CONTEXT),
    number('llama.embedding_length', HIDDEN),
    number('llama.block_count', LAYERS),
    number('llama.feed_forward_length', FEED_FORWARD),
    number('llama.attention.head_count', HEADS),
    number('llama.attention.head_count_kv', HEADS),
    number('llama.rope.dimension_count', HIDDEN / HEADS),
    float('llama.attention.layer_norm_rms_epsilon', 1e-5),
    number('llama.vocab_size', words.length),
    string('tokenizer.ggml.model', 'gpt2'),
    string('tokenizer.ggml.pre', 'gpt-2'),
    list('tokenizer.ggml.tokens', TYPE.string, words.map(text)),
    list('tokenizer.ggml.token_type', TYPE.int32, kinds),
    list('tokenizer.ggml.merges', TYPE.string, [text('t h')]),
    number('tokenizer.ggml.bos_token_id', 0),
    number('tokenizer.ggml.eos_token_id', 1),
    number('tokenizer.ggml.eot_token_id', 3),
    string('tokenizer.chat_template', CHAT_TEMPLATE),
  ];
}

/** Their sizes fastest first, as ggml counts. */
function tensors(words: readonly string[]): readonly Tensor[] {
  const weights = randomTensors(SEED);
  const output = weights('output.weight', HIDDEN, words.length);
  // Letters alone, so an answer is ASCII.
  silenceAllBut(/^[a-z]$/, words, output);
  const layer = (i: number): readonly Tensor[] => [
    ones(`blk.${i}.attn_norm.weight`),
    ...['q', 'k', 'v', 'output'].map((one) =>
      weights(`blk.${i}.attn_${one}.weight`, HIDDEN, HIDDEN),
    ),
    ones(`blk.${i}.ffn_norm.weight`),
    weights(`blk.${i}.ffn_gate.weight`, HIDDEN, FEED_FORWARD),
    weights(`blk.${i}.ffn_up.weight`, HIDDEN, FEED_FORWARD),
    weights(`blk.${i}.ffn_down.weight`, FEED_FORWARD, HIDDEN),
  ];
  return [
    weights('token_embd.weight', HIDDEN, words.length),
    ones('output_norm.weight'),
    output,
    ...Array.from({ length: LAYERS }, (_, i) => layer(i)).flat(),
  ];
}

function tensorTable(all: readonly Tensor[]): readonly Buffer[] {
  let offset = 0;
  return all.map(({ name, shape, data }) => {
    const dimensions = shape.map(uint64);
    const row = [text(name), uint32(shape.length), ...dimensions, uint32(0), uint64(offset)];
    offset += Math.ceil(data.byteLength / ALIGNMENT) * ALIGNMENT;
    return Buffer.concat(row);
  });
}

function aligned(bytes: Buffer): Buffer {
  return Buffer.concat([bytes, Buffer.alloc((ALIGNMENT - (bytes.length % ALIGNMENT)) % ALIGNMENT)]);
}

function text(value: string): Buffer {
  const bytes = Buffer.from(value);
  return Buffer.concat([uint64(bytes.length), bytes]);
}

function uint32(value: number): Buffer {
  const bytes = Buffer.alloc(4);
  bytes.writeUInt32LE(value);
  return bytes;
}

function uint64(value: number): Buffer {
  const bytes = Buffer.alloc(8);
  bytes.writeBigUInt64LE(BigInt(value));
  return bytes;
}

function float32(value: number): Buffer {
  const bytes = Buffer.alloc(4);
  bytes.writeFloatLE(value);
  return bytes;
}
