import type { Attributes, AttributeValue, Frame, Seconds } from './types.ts';
import type { OtlpKeyValue, OtlpValue } from './otlp-types.ts';
import { ATTR } from './semconv.ts';

/**
 * Values both ways between ours and OTLP/JSON's. Reading is total: what is not a value of the expected shape gives
 * `undefined`, never an exception.
 */

const NANOS_PER_SECOND = 1e9;
/** Values nested deeper than this are cut: a hostile file must not exhaust the stack. */
const DEPTH_LIMIT = 32;

/**
 * Whether a numeric attribute is always a double, so that a back end sees one type for each key: our own numbers are
 * measurements (0 s of waiting is `0.0`), OpenTelemetry's are pids, lines and other integers.
 */
function isMeasurement(key: string): boolean {
  return (
    key.startsWith('tracewright.') &&
    key !== ATTR.startTicks &&
    !key.endsWith('.count') &&
    !key.endsWith('.index')
  );
}

/**
 * Nanoseconds since the epoch as a decimal string. Whole and fraction are converted apart: one multiplication of a
 * Unix time by 1e9 leaves the exact integers and loses up to 128 ns.
 */
export function toNanos(at: Seconds): string {
  if (!Number.isFinite(at) || at <= 0) return '0';
  let whole = Math.floor(at);
  let nanos = Math.round((at - whole) * NANOS_PER_SECOND);
  if (nanos === NANOS_PER_SECOND) {
    whole++;
    nanos = 0;
  }
  return whole === 0 ? String(nanos) : `${whole}${String(nanos).padStart(9, '0')}`;
}

/** The inverse of `toNanos`; also takes a number, as some writers use. 0 when it is neither. */
export function fromNanos(nanos: unknown): Seconds {
  if (typeof nanos === 'number') return Number.isFinite(nanos) ? nanos / NANOS_PER_SECOND : 0;
  if (typeof nanos !== 'string' || !/^\d{1,20}$/.test(nanos)) return 0;
  if (nanos.length <= 9) return Number(nanos) / NANOS_PER_SECOND;
  return Number(nanos.slice(0, -9)) + Number(nanos.slice(-9)) / NANOS_PER_SECOND;
}

/** A double as JSON can hold it: OTLP/JSON writes the three non-finite ones as strings. */
export function toDouble(value: number): number | 'NaN' | 'Infinity' | '-Infinity' {
  if (Number.isFinite(value)) return value;
  if (Number.isNaN(value)) return 'NaN';
  return value > 0 ? 'Infinity' : '-Infinity';
}

/** A number from a JSON number, a decimal string or a non-finite name; undefined for anything else. */
export function toNumber(value: unknown): number | undefined {
  if (typeof value === 'number') return value;
  if (typeof value !== 'string' || value === '' || value.length > 32) return undefined;
  if (value === 'NaN') return Number.NaN;
  const number = Number(value);
  return Number.isNaN(number) ? undefined : number;
}

/** Any JSON-like value as OTLP's AnyValue. Functions, symbols and undefined become null. */
export function toOtlpValue(value: unknown, depth = 0): OtlpValue {
  if (depth > DEPTH_LIMIT) return { stringValue: '…' };
  if (typeof value === 'string') return { stringValue: value };
  if (typeof value === 'boolean') return { boolValue: value };
  if (typeof value === 'bigint') return { intValue: String(value) };
  if (typeof value === 'number')
    return Number.isSafeInteger(value) && !Object.is(value, -0)
      ? { intValue: String(value) }
      : { doubleValue: toDouble(value) };
  if (Array.isArray(value))
    return { arrayValue: { values: value.map((item) => toOtlpValue(item, depth + 1)) } };
  if (typeof value === 'object' && value !== null)
    return {
      kvlistValue: {
        values: Object.entries(value)
          .filter(([, item]) => item !== undefined)
          .map(([key, item]) => ({ key, value: toOtlpValue(item, depth + 1) })),
      },
    };
  return {};
}

/** Attributes as OTLP's key-value list, in their own order. */
export function toKeyValues(attributes: Attributes | undefined): OtlpKeyValue[] {
  if (attributes === undefined) return [];
  return Object.entries(attributes).map(([key, value]) => ({
    key,
    value:
      typeof value === 'number' && isMeasurement(key)
        ? { doubleValue: toDouble(value) }
        : toOtlpValue(value),
  }));
}

/** The object if it is one (not an array, not null), else undefined. */
export function asObject(value: unknown): Readonly<Record<string, unknown>> | undefined {
  if (typeof value !== 'object' || value === null || Array.isArray(value)) return undefined;
  return value as Readonly<Record<string, unknown>>;
}

/** The array if it is one, else empty. */
export function asArray(value: unknown): readonly unknown[] {
  return Array.isArray(value) ? value : [];
}

/** The string if it is one, else the fallback. */
export function asString(value: unknown, fallback = ''): string {
  return typeof value === 'string' ? value : fallback;
}

/** The number if it is a finite one, else 0. */
export function asFinite(value: unknown): number {
  return typeof value === 'number' && Number.isFinite(value) ? value : 0;
}

/** The integer if it is one, else null. */
export function asInteger(value: unknown): number | null {
  return typeof value === 'number' && Number.isInteger(value) ? value : null;
}

/** The frame if it is an object, with `?` for what it does not name, else null. */
export function asFrame(value: unknown): Frame | null {
  const frame = asObject(value);
  if (frame === undefined) return null;
  return {
    function: asString(frame['function'], '?'),
    file: asString(frame['file'], '?'),
    line: asInteger(frame['line']),
  };
}

/** An AnyValue as a plain JSON-like value; null for an empty or unknown one. */
export function fromOtlpValue(value: unknown, depth = 0): unknown {
  const any = asObject(value);
  if (any === undefined || depth > DEPTH_LIMIT) return null;
  if (typeof any['stringValue'] === 'string') return any['stringValue'];
  if (typeof any['boolValue'] === 'boolean') return any['boolValue'];
  const number = toNumber(any['intValue'] ?? any['doubleValue']);
  if (number !== undefined) return number;
  if (typeof any['bytesValue'] === 'string') return any['bytesValue'];
  const array = asObject(any['arrayValue']);
  if (array !== undefined)
    return asArray(array['values']).map((item) => fromOtlpValue(item, depth + 1));
  const list = asObject(any['kvlistValue']);
  if (list !== undefined) return fromKeyValues(list['values'], depth + 1);
  return null;
}

/** A key-value list as a plain object; entries that are not key and value are left out. */
export function fromKeyValues(list: unknown, depth = 0): Record<string, unknown> {
  const result: Record<string, unknown> = {};
  for (const item of asArray(list)) {
    const pair = asObject(item);
    if (pair === undefined || typeof pair['key'] !== 'string') continue;
    setOwn(result, pair['key'], fromOtlpValue(pair['value'], depth));
  }
  return result;
}

/** A key-value list as attributes: scalars and lists of strings stay, anything else becomes its JSON text. */
export function fromAttributes(list: unknown): Attributes {
  const result: Record<string, AttributeValue> = {};
  for (const [key, value] of Object.entries(fromKeyValues(list))) {
    if (value === null) continue;
    setOwn(result, key, asAttributeValue(value));
  }
  return result;
}

function asAttributeValue(value: unknown): AttributeValue {
  if (typeof value === 'string' || typeof value === 'number' || typeof value === 'boolean')
    return value;
  if (Array.isArray(value) && value.every((item): item is string => typeof item === 'string'))
    return value;
  return JSON.stringify(value);
}

/**
 * A string that is the same for the same attributes; null when they are not all scalars. Built by hand: `JSON.stringify` took a
 * third of reading a large recording, and overflows the stack on values nested by somebody who means harm.
 */
export function attributesKey(list: unknown): string | null {
  let key = '';
  for (const item of asArray(list)) {
    const pair = asObject(item);
    const value = asObject(pair?.['value']);
    const scalar =
      value?.['stringValue'] ??
      value?.['intValue'] ??
      value?.['doubleValue'] ??
      value?.['boolValue'];
    if (typeof scalar !== 'string' && typeof scalar !== 'number' && typeof scalar !== 'boolean')
      return null;
    const kind = value !== undefined && 'stringValue' in value ? '"' : '';
    key += `${String(pair?.['key'])}\0${kind}${String(scalar)}\0`;
  }
  return key;
}

/** `__proto__` from a file must become a property, not a prototype. */
function setOwn<T>(target: Record<string, T>, key: string, value: T): void {
  if (key === '__proto__')
    Object.defineProperty(target, key, { value, enumerable: true, configurable: true });
  else target[key] = value;
}
