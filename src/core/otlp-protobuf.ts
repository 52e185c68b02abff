import { OTLP_SCHEMA, type ScalarType } from './otlp-schema.ts';
import type { OtlpPayload } from './otlp-types.ts';

/**
 * OTLP/JSON objects as protobuf bytes, by the table in `otlp-schema.ts`. Written from the end of the buffer towards its start:
 * the length of a message is then known when its prefix is due, and nothing is measured or copied twice.
 */

const INITIAL_BYTES = 64 * 1024;
const WIRE_VARINT = 0;
const WIRE_FIXED64 = 1;
const WIRE_LENGTH = 2;
const WIRE_FIXED32 = 5;

interface Field {
  readonly key: string;
  readonly number: number;
  readonly type: ScalarType;
  /** The message it holds; then `type` means nothing. */
  readonly message: string | null;
  readonly repeated: boolean;
}

const WIRE: Readonly<Record<ScalarType, number>> = {
  string: WIRE_LENGTH,
  bytes: WIRE_LENGTH,
  bool: WIRE_VARINT,
  double: WIRE_FIXED64,
  fixed64: WIRE_FIXED64,
  fixed32: WIRE_FIXED32,
  uint64: WIRE_VARINT,
  uint32: WIRE_VARINT,
  int64: WIRE_VARINT,
  sint32: WIRE_VARINT,
  enum: WIRE_VARINT,
};

/** Fields of each message, highest number first: the buffer is filled backwards. */
const FIELDS: ReadonlyMap<string, readonly Field[]> = new Map(
  Object.entries(OTLP_SCHEMA).map(([message, fields]) => [
    message,
    Object.entries(fields)
      .map(([key, [number, type]]): Field => {
        const repeated = type.endsWith('[]');
        const element = repeated ? type.slice(0, -2) : type;
        const isMessage = element in OTLP_SCHEMA;
        return {
          key,
          number,
          repeated,
          message: isMessage ? element : null,
          type: isMessage ? 'bytes' : (element as ScalarType),
        };
      })
      .toSorted((a, b) => b.number - a.number),
  ]),
);

/** The body of an OTLP/HTTP request with content type `application/x-protobuf`. */
export function encodeProtobuf(payload: OtlpPayload): Buffer {
  const writer = new BackwardWriter();
  writeMessage(writer, 'Payload', payload);
  return writer.finish();
}

function writeMessage(writer: BackwardWriter, message: string, value: object): void {
  const values = value as Readonly<Record<string, unknown>>;
  for (const field of FIELDS.get(message) ?? []) {
    const item = values[field.key];
    if (item === undefined || item === null) continue;
    if (!field.repeated) writeField(writer, field, item);
    else if (Array.isArray(item)) writeRepeated(writer, field, item);
  }
}

function writeRepeated(writer: BackwardWriter, field: Field, items: readonly unknown[]): void {
  if (items.length === 0) return;
  const packed = field.message === null && WIRE[field.type] !== WIRE_LENGTH;
  const end = writer.mark();
  for (let i = items.length - 1; i >= 0; i--) {
    if (packed) writeScalar(writer, field.type, items[i]);
    else writeField(writer, field, items[i]);
  }
  if (packed) writer.lengthAndTag(end, field.number);
}

function writeField(writer: BackwardWriter, field: Field, value: unknown): void {
  const end = writer.mark();
  if (field.message !== null) {
    if (typeof value === 'object' && value !== null) writeMessage(writer, field.message, value);
    writer.lengthAndTag(end, field.number);
    return;
  }
  writeScalar(writer, field.type, value);
  if (WIRE[field.type] === WIRE_LENGTH) writer.lengthAndTag(end, field.number);
  else writer.varint((field.number << 3) | WIRE[field.type]);
}

function writeScalar(writer: BackwardWriter, type: ScalarType, value: unknown): void {
  switch (type) {
    case 'string':
      return writer.bytes(Buffer.from(String(value), 'utf8'));
    case 'bytes':
      return writer.bytes(Buffer.from(String(value), 'hex'));
    case 'bool':
      return writer.varint(value === true ? 1 : 0);
    case 'double':
      return writer.double(Number(value));
    case 'fixed64':
      return writer.fixed64(BigInt(value as string | number));
    case 'fixed32':
      return writer.fixed32(Number(value));
    case 'uint32':
    case 'enum':
      return writer.varint(Number(value));
    case 'sint32': {
      const signed = Number(value);
      return writer.varint(((signed << 1) ^ (signed >> 31)) >>> 0);
    }
    case 'int64':
    case 'uint64': {
      const small = Number(value);
      if (small >= 0 && small <= 0xffffffff) return writer.varint(small);
      return writer.bigVarint(BigInt.asUintN(64, BigInt(value as string | number)));
    }
  }
}

/** A buffer that is filled from its end and doubles at its start. */
class BackwardWriter {
  #buffer = Buffer.allocUnsafe(INITIAL_BYTES);
  #at = INITIAL_BYTES;

  /** How many bytes are written: the end of what comes next. */
  mark(): number {
    return this.#buffer.length - this.#at;
  }

  finish(): Buffer {
    return this.#buffer.subarray(this.#at);
  }

  /** Prefixes what was written since `end` with its length and the tag of a length-delimited field. */
  lengthAndTag(end: number, field: number): void {
    this.varint(this.mark() - end);
    this.varint((field << 3) | WIRE_LENGTH);
  }

  bytes(bytes: Buffer): void {
    const at = this.#reserve(bytes.length);
    bytes.copy(this.#buffer, at);
  }

  double(value: number): void {
    const at = this.#reserve(8);
    this.#buffer.writeDoubleLE(value, at);
  }

  fixed64(value: bigint): void {
    const at = this.#reserve(8);
    this.#buffer.writeBigUInt64LE(BigInt.asUintN(64, value), at);
  }

  fixed32(value: number): void {
    const at = this.#reserve(4);
    this.#buffer.writeUInt32LE(value >>> 0, at);
  }

  /** `value` must be a non-negative 32-bit integer. */
  varint(value: number): void {
    let length = 1;
    for (let rest = value >>> 7; rest > 0; rest >>>= 7) length++;
    let at = this.#reserve(length);
    let rest = value >>> 0;
    for (; rest > 0x7f; rest >>>= 7) this.#buffer[at++] = (rest & 0x7f) | 0x80;
    this.#buffer[at] = rest;
  }

  bigVarint(value: bigint): void {
    const bytes: number[] = [];
    let rest = value;
    for (; rest > 0x7fn; rest >>= 7n) bytes.push(Number(rest & 0x7fn) | 0x80);
    this.bytes(Buffer.from([...bytes, Number(rest)]));
  }

  /** Room for `length` bytes before what is there; gives the index of the first. May replace the buffer. */
  #reserve(length: number): number {
    if (length > this.#at) {
      const used = this.mark();
      const larger = Buffer.allocUnsafe(Math.max(this.#buffer.length * 2, used + length * 2));
      this.#buffer.copy(larger, larger.length - used, this.#at);
      this.#buffer = larger;
      this.#at = larger.length - used;
    }
    this.#at -= length;
    return this.#at;
  }
}
