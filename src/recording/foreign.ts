import { printable } from '../core/text.ts';

/** What a file that is no recording looks like, from its first bytes. */

const MAGIC: readonly (readonly [bytes: string, what: string])[] = [
  ['7f454c46', 'an ELF program or core dump'],
  ['1f8b', 'a gzip file (a recording inside one must be named *.jsonl.gz)'],
  ['504b0304', 'a zip archive'],
  ['28b52ffd', 'a zstd file'],
  ['89504e47', 'a PNG image'],
  ['53514c69746520', 'a SQLite database'],
  ['d4c3b2a1', 'a packet capture'],
  ['0a0d0d0a', 'a packet capture (pcapng)'],
];

/** Distinctive top-level keys of JSON formats people have beside a recording. */
const JSON_KEYS: readonly (readonly [key: RegExp, what: string])[] = [
  [/"traceEvents"/, 'a Chrome trace'],
  [/speedscope\.app/, 'a speedscope profile'],
  [/"timeDeltas"|"callFrame"/, 'a V8 CPU or heap profile'],
  [/"snapshot"\s*:\s*\{\s*"meta"/, 'a V8 heap snapshot'],
  [/"schema_version"/, 'a report of trace (--json); its recording is the folder it names'],
  [/"\$schema"[^,]*sarif/, 'a SARIF log'],
];

/** A description for an error message, from the first bytes of a file. */
export function describeContent(head: Buffer): string {
  const hex = head.subarray(0, 16).toString('hex');
  const magic = MAGIC.find(([bytes]) => hex.startsWith(bytes));
  if (magic !== undefined) return magic[1];
  const text = head.toString('utf8');
  const json = JSON_KEYS.find(([key]) => key.test(text));
  if (json !== undefined) return json[1];
  const trimmed = text.trimStart();
  if (trimmed.startsWith('{') || trimmed.startsWith('[')) return 'JSON, but not OTLP';
  if (/[\0\ufffd]/.test(text.slice(0, 512))) return 'binary data';
  return `text that begins "${printable(trimmed, 40)}"`;
}
