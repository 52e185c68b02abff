import { gzipSync } from 'node:zlib';
import type { Frame } from '../../core/types.ts';
import { outside } from '../layout.ts';
import type { ProfileReport } from './report.ts';

/**
 * The profile as pprof reads it: profile.proto (github.com/google/pprof, perftools.profiles.Profile), compressed. Two values a sample, looks
 * and nanoseconds; thread and process stand as labels.
 */

/** Fields of the messages, by number. */
const PROFILE = {
  sampleType: 1,
  sample: 2,
  mapping: 3,
  location: 4,
  function: 5,
  stringTable: 6,
  timeNanos: 9,
  durationNanos: 10,
  periodType: 11,
  period: 12,
  comment: 13,
  defaultSampleType: 14,
} as const;
const SAMPLE = { locationId: 1, value: 2, label: 3 } as const;
const LABEL = { key: 1, text: 2, number: 3 } as const;
const LOCATION = { id: 1, mappingId: 2, line: 4 } as const;
const LINE = { functionId: 1, line: 2 } as const;
const FUNCTION = { id: 1, name: 2, systemName: 3, filename: 4 } as const;
const VALUE_TYPE = { type: 1, unit: 2 } as const;
/** pprof takes names from locations only where a mapping says that it has functions, files and lines. */
const MAPPING = { id: 1, filename: 5, hasFunctions: 7, hasFilenames: 8, hasLines: 9 } as const;

const VARINT = 0;
const BYTES = 2;

/** The file's content. */
export function renderPprof(report: ProfileReport): Buffer {
  const { profile, quality } = report;
  const strings = new Strings();
  const places = new Places(strings);
  const out = new Message();
  const valueType = (type: string, unit: string): Message =>
    new Message()
      .number(VALUE_TYPE.type, strings.of(type))
      .number(VALUE_TYPE.unit, strings.of(unit));
  const kind = profile.mode === 'cpu' ? 'cpu' : profile.mode;
  out.message(PROFILE.sampleType, valueType('samples', 'count'));
  out.message(PROFILE.sampleType, valueType(kind, 'nanoseconds'));
  for (const { thread, stack, count, weight } of profile.entries) {
    const facts = profile.threads[thread];
    const sample = new Message()
      .packed(
        SAMPLE.locationId,
        (profile.stacks[stack] ?? []).map((frame) => places.of(frame)),
      )
      .packed(SAMPLE.value, [count, Math.round(weight * 1e9)]);
    const label = (key: string): Message => new Message().number(LABEL.key, strings.of(key));
    sample.message(
      SAMPLE.label,
      label('thread').number(LABEL.text, strings.of(outside(facts?.name ?? '?', 100))),
    );
    sample.message(SAMPLE.label, label('pid').number(LABEL.number, facts?.pid ?? 0));
    sample.message(SAMPLE.label, label('tid').number(LABEL.number, facts?.tid ?? 0));
    out.message(PROFILE.sample, sample);
  }
  const mapping = new Message()
    .number(MAPPING.id, 1)
    .number(MAPPING.filename, strings.of(outside(report.targets[0]?.title ?? '', 200)))
    .number(MAPPING.hasFunctions, 1)
    .number(MAPPING.hasFilenames, 1)
    .number(MAPPING.hasLines, 1);
  out.message(PROFILE.mapping, mapping);
  for (const location of places.locations) out.message(PROFILE.location, location);
  for (const one of places.functions) out.message(PROFILE.function, one);
  out.number(PROFILE.timeNanos, Math.round(profile.startedAt * 1e9));
  out.number(PROFILE.durationNanos, Math.round(profile.duration * 1e9));
  out.message(PROFILE.periodType, valueType(kind, 'nanoseconds'));
  out.number(PROFILE.period, Math.round(1e9 / quality.rate));
  out.number(
    PROFILE.comment,
    strings.of(`tracewright ${report.toolVersion}, mode ${profile.mode}`),
  );
  out.number(PROFILE.defaultSampleType, strings.of(kind));
  for (const text of strings.all) out.text(PROFILE.stringTable, text);
  return gzipSync(out.finish());
}

class Strings {
  /** The first must be empty. */
  readonly #index = new Map<string, number>([['', 0]]);

  of(text: string): number {
    const known = this.#index.get(text);
    if (known !== undefined) return known;
    this.#index.set(text, this.#index.size);
    return this.#index.size - 1;
  }

  get all(): Iterable<string> {
    return this.#index.keys();
  }
}

/** Locations (a function at a line) and functions, each with a number from 1 on. */
class Places {
  readonly locations: Message[] = [];
  readonly functions: Message[] = [];
  readonly #strings: Strings;
  readonly #byLocation = new Map<string, number>();
  readonly #byFunction = new Map<string, number>();

  constructor(strings: Strings) {
    this.#strings = strings;
  }

  of(frame: Frame): number {
    const key = `${frame.function}\n${frame.file}\n${frame.line}`;
    const known = this.#byLocation.get(key);
    if (known !== undefined) return known;
    const line = new Message()
      .number(LINE.functionId, this.#functionOf(frame))
      .number(LINE.line, frame.line ?? 0);
    const id = this.#byLocation.size + 1;
    this.#byLocation.set(key, id);
    this.locations.push(
      new Message()
        .number(LOCATION.id, id)
        .number(LOCATION.mappingId, 1)
        .message(LOCATION.line, line),
    );
    return id;
  }

  #functionOf({ function: name, file }: Frame): number {
    const key = `${name}\n${file}`;
    const known = this.#byFunction.get(key);
    if (known !== undefined) return known;
    const id = this.#byFunction.size + 1;
    this.#byFunction.set(key, id);
    const text = this.#strings.of(outside(name, 400));
    this.functions.push(
      new Message()
        .number(FUNCTION.id, id)
        .number(FUNCTION.name, text)
        .number(FUNCTION.systemName, text)
        .number(FUNCTION.filename, this.#strings.of(outside(file, 1024))),
    );
    return id;
  }
}

/** A protobuf message being written. */
class Message {
  readonly #parts: Buffer[] = [];

  /** A non-negative whole number; 0 is what a field is without being written. */
  number(field: number, value: number): this {
    if (value !== 0) this.#parts.push(varint(field * 8 + VARINT), varint(value));
    return this;
  }

  packed(field: number, values: readonly number[]): this {
    if (values.length === 0) return this;
    return this.#bytes(field, Buffer.concat(values.map(varint)));
  }

  text(field: number, text: string): this {
    return this.#bytes(field, Buffer.from(text, 'utf8'));
  }

  message(field: number, message: Message): this {
    return this.#bytes(field, message.finish());
  }

  finish(): Buffer {
    return Buffer.concat(this.#parts);
  }

  #bytes(field: number, bytes: Buffer): this {
    this.#parts.push(varint(field * 8 + BYTES), varint(bytes.length), bytes);
    return this;
  }
}

/** Exact up to 2^53. */
function varint(value: number): Buffer {
  const bytes: number[] = [];
  let rest = value;
  for (; rest >= 0x80; rest = Math.floor(rest / 0x80)) bytes.push((rest % 0x80) | 0x80);
  bytes.push(rest);
  return Buffer.from(bytes);
}
