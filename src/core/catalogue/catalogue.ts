import type { CatalogueEntry } from './entry.ts';
import { GROWTH_FINDINGS } from './growth.ts';
import { LOOP_FINDINGS } from './loop.ts';
import { REQUEST_FINDINGS } from './requests.ts';
import { SERVER_FINDINGS } from './server.ts';
import { WAIT_FINDINGS } from './waits.ts';

/**
 * Every finding there is: its code, its kind, and the mechanisms that it may have. Types, the JSON
 * schema, the documentation, the words of the verdict and completion come from here or are compared
 * with it (test/catalogue.test.ts).
 */

type Entry =
  | (typeof LOOP_FINDINGS)[number]
  | (typeof WAIT_FINDINGS)[number]
  | (typeof GROWTH_FINDINGS)[number]
  | (typeof SERVER_FINDINGS)[number]
  | (typeof REQUEST_FINDINGS)[number];

/** By code. One kind may have several codes: who looked, and at what, is in the code. */
export const CATALOGUE: readonly (Entry & CatalogueEntry)[] = [
  ...LOOP_FINDINGS,
  ...WAIT_FINDINGS,
  ...GROWTH_FINDINGS,
  ...SERVER_FINDINGS,
  ...REQUEST_FINDINGS,
].sort((a, b) => a.code.localeCompare(b.code));

export type FindingKind = Entry['kind'];

/** `xid-<number>` as TypeScript writes it. */
type Filled<Name> = Name extends `${infer Before}<number>`
  ? `${Before}${number}`
  : Name extends `${infer Before}<name>`
    ? `${Before}${string}`
    : Name;
type Listed<Name extends string> = Name | `${Name}, ${Name}` | `${Name}, ${Name}, ${Name}`;
type MechanismIn<E> = E extends { readonly mechanisms: infer Mechanisms }
  ? E extends { readonly isList: true }
    ? Listed<keyof Mechanisms & string>
    : Filled<keyof Mechanisms>
  : never;

/** The mechanisms that a finding of this kind may have. */
export type MechanismOf<Kind extends FindingKind> = MechanismIn<Extract<Entry, { kind: Kind }>>;

export const FINDING_KINDS: readonly FindingKind[] = [
  ...new Set(CATALOGUE.map(({ kind }) => kind)),
];

/** How the first line of a report calls a run by its gravest finding. */
export const VERDICT_WORDS: Readonly<Record<FindingKind, string>> = {
  'loop-blocked': 'BLOCKED',
  'cpu-spin': 'SPINNING',
  'cpu-throttled': 'THROTTLED',
  'memory-limit': 'MEMORY LIMIT',
  'memory-leak': 'LEAKING MEMORY',
  'fd-leak': 'LEAKING DESCRIPTORS',
  'socket-leak': 'LEAKING SOCKETS',
  'task-leak': 'LEAKING TASKS',
  'thread-leak': 'LEAKING THREADS',
  deadlock: 'DEADLOCKED',
  'lock-contention': 'CONTENDED',
  race: 'RACE',
  crosstalk: 'CROSSTALK',
  'latency-drift': 'DRIFTING',
  'process-exit': 'EXITED',
  wedge: 'WEDGED',
  saturation: 'SATURATED',
  'client-saturated': 'CLIENT SATURATED',
  'request-errors': 'FAILING',
  'slow-requests': 'SLOW',
  'gpu-memory-leak': 'LEAKING GPU MEMORY',
  'gpu-idle': 'GPU IDLE',
  'gpu-throttled': 'GPU THROTTLED',
  'gpu-fault': 'GPU FAULT',
  'growth-inconclusive': 'GROWING',
};

/**
 * Where the documentation says how it is decided and where it is blind: a page, and the anchor of a
 * heading.
 */
export function documentationOf({ code, kind }: Pick<CatalogueEntry, 'code' | 'kind'>): string {
  return `docs/detectors.md#${code.toLowerCase()}-${kind}`;
}

/**
 * The text as a mechanism of that kind. Null where this version has none of that name: a newer one
 * wrote it, or a target's own words were to become one.
 */
export function mechanismOf<Kind extends FindingKind>(
  kind: Kind,
  text: string | null,
): MechanismOf<Kind> | null {
  const entries = CATALOGUE.filter((entry) => entry.kind === kind);
  return text !== null && entries.some((entry) => hasMechanism(entry, text))
    ? (text as MechanismOf<Kind>)
    : null;
}

function hasMechanism({ mechanisms, isList }: CatalogueEntry, text: string): boolean {
  const names = Object.keys(mechanisms);
  const isOne = (part: string): boolean => names.some((name) => fits(name, part));
  return isList === true ? text.split(', ').every(isOne) : isOne(text);
}

/** Longer is no name any more. */
const NAME_LIMIT = 60;

/** Whether a name of the catalogue, `xid-<number>` among them, stands for this text. */
function fits(name: string, text: string): boolean {
  const open = name.indexOf('<');
  if (open === -1) return name === text;
  const [before, rest] = [name.slice(0, open), text.slice(open)];
  if (!text.startsWith(before) || rest === '' || rest.length > NAME_LIMIT) return false;
  return name.endsWith('<number>') ? /^\d+$/.test(rest) : true;
}
