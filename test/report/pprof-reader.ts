import { gunzipSync } from 'node:zlib';

/** A reader of profile.proto, as much as tests ask of it, written from the format's description and not from our writer. */

type Fields = Map<number, (number | Buffer)[]>;

export interface ReadPprof {
  readonly sampleTypes: readonly string[];
  readonly samples: readonly {
    readonly stack: readonly string[];
    readonly values: readonly number[];
    readonly thread: string;
  }[];
  readonly durationNanos: number;
}

export function readPprof(file: Buffer): ReadPprof {
  const profile = fields(gunzipSync(file));
  const strings = all(profile, 6).map((bytes) => bytes.toString('utf8'));
  const text = (message: Fields, field: number): string => strings[number(message, field)] ?? '?';
  const functions = new Map(
    all(profile, 5).map((bytes) => {
      const one = fields(bytes);
      return [number(one, 1), `${text(one, 2)} ${text(one, 4)}`];
    }),
  );
  const locations = new Map(
    all(profile, 4).map((bytes) => {
      const one = fields(bytes);
      const line = fields(all(one, 4)[0] ?? Buffer.alloc(0));
      return [number(one, 1), `${functions.get(number(line, 1))}:${number(line, 2)}`];
    }),
  );
  return {
    sampleTypes: all(profile, 1).map((bytes) => {
      const one = fields(bytes);
      return `${text(one, 1)}/${text(one, 2)}`;
    }),
    samples: all(profile, 2).map((bytes) => {
      const one = fields(bytes);
      const thread = all(one, 3)
        .map(fields)
        .find((label) => text(label, 1) === 'thread');
      return {
        stack: numbers(one, 1).map((id) => locations.get(id) ?? '?'),
        values: numbers(one, 2),
        thread: thread === undefined ? '?' : text(thread, 2),
      };
    }),
    durationNanos: number(profile, 10),
  };
}

function fields(bytes: Buffer): Fields {
  const found: Fields = new Map();
  for (let at = 0; at < bytes.length;) {
    const [tag, afterTag] = varint(bytes, at);
    const [value, afterValue] = varint(bytes, afterTag);
    at = afterValue;
    const wire = tag % 8;
    if (wire !== 0 && wire !== 2) throw new Error(`wire type ${wire}`);
    const field = Math.floor(tag / 8);
    const list = found.get(field) ?? [];
    found.set(field, list);
    if (wire === 0) list.push(value);
    else {
      list.push(bytes.subarray(at, at + value));
      at += value;
    }
  }
  return found;
}

function varint(bytes: Buffer, from: number): [value: number, next: number] {
  let value = 0;
  for (let at = from, factor = 1; ; at++, factor *= 128) {
    const byte = bytes[at];
    if (byte === undefined) throw new Error('cut');
    value += (byte & 0x7f) * factor;
    if (byte < 0x80) return [value, at + 1];
  }
}

function all(message: Fields, field: number): Buffer[] {
  return (message.get(field) ?? []).filter((one) => Buffer.isBuffer(one));
}

function number(message: Fields, field: number): number {
  const value = message.get(field)?.[0];
  return typeof value === 'number' ? value : 0;
}

/** Packed. */
function numbers(message: Fields, field: number): number[] {
  return all(message, field).flatMap((bytes) => {
    const values: number[] = [];
    for (let at = 0; at < bytes.length;) {
      const [value, next] = varint(bytes, at);
      values.push(value);
      at = next;
    }
    return values;
  });
}
