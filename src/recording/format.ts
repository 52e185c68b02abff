/** What the files of a recording are called, and which version of their contents this program writes and reads. */

/** `RunStart.schemaVersion` of what we write; a recording with a higher one is refused. See docs/recording-format.md. */
export const RECORDING_SCHEMA_VERSION = 1;

/** Segment files of a recording folder: `telemetry.jsonl`, then `telemetry.0001.jsonl`, …; finished ones are gzipped. */
export const SEGMENT_PATTERN: RegExp = /^telemetry(?:\.(\d{4,}))?\.jsonl(\.gz)?$/;

/** The file name of the n-th segment, counted from 0. */
export function segmentName(index: number): string {
  return index === 0 ? 'telemetry.jsonl' : `telemetry.${String(index).padStart(4, '0')}.jsonl`;
}

/** The number of a segment by its file name, and whether it is compressed; undefined for any other file. */
export function parseSegmentName(name: string): { index: number; gzipped: boolean } | undefined {
  const match = SEGMENT_PATTERN.exec(name);
  if (match === null) return undefined;
  return { index: match[1] === undefined ? 0 : Number(match[1]), gzipped: match[2] !== undefined };
}

/** Where a recording is, and which of its findings (`F1`) or hypotheses (`H2`) is meant. */
export interface RecordingAddress {
  readonly path: string;
  readonly kind: 'recording' | 'finding' | 'hypothesis';
  readonly id: string | null;
}

/** `<recording>`, `<recording>#F1` or `<recording>#H2`; any other `#` belongs to the path. */
export function parseRecordingAddress(text: string): RecordingAddress {
  const match = /^(.+)#([FH])(\d{1,6})$/.exec(text);
  const [, path, letter, number] = match ?? [];
  if (path === undefined || number === undefined)
    return { path: text, kind: 'recording', id: null };
  const kind = letter === 'F' ? 'finding' : 'hypothesis';
  return { path, kind, id: `${letter}${number}` };
}
