const WIRE_VARINT = 0;
const WIRE_FIXED64 = 1;
const WIRE_LENGTH = 2;

/** The last value of each field of a small message, varints as numbers; stops at the first byte that cannot be right. */
export function fieldsOf(bytes: Buffer): ReadonlyMap<number, number | Buffer> {
  const fields = new Map<number, number | Buffer>();
  for (const [field, value] of eachField(bytes)) fields.set(field, value);
  return fields;
}

/** Every length-delimited value of a repeated field. */
export function repeatedField(bytes: Buffer, number: number): Buffer[] {
  const found: Buffer[] = [];
  for (const [field, value] of eachField(bytes))
    if (field === number && Buffer.isBuffer(value)) found.push(value);
  return found;
}

function* eachField(bytes: Buffer): Generator<readonly [number, number | Buffer]> {
  let at = 0;
  const varint = (): number => {
    let value = 0;
    for (let scale = 1; at < bytes.length; scale *= 128) {
      const byte = bytes[at++] ?? 0;
      value += (byte & 0x7f) * scale;
      if (byte < 0x80) break;
    }
    return value;
  };
  while (at < bytes.length) {
    const tag = varint();
    const field = Math.floor(tag / 8);
    const wire = tag % 8;
    if (wire === WIRE_VARINT) yield [field, varint()];
    else if (wire === WIRE_LENGTH) {
      const length = varint();
      yield [field, bytes.subarray(at, at + length)];
      at += length;
    } else if (wire === WIRE_FIXED64) at += 8;
    else return;
  }
}
