import type {
  HeapCode,
  HeapContainer,
  HeapHolder,
  HeapLook,
  HeapPath,
  HeapTypeCount,
  OwnerKind,
} from './heap-look.ts';
import type { Seconds } from './types.ts';
import { isRecord } from './record.ts';

/** A look at a heap as a recording keeps it: the largest of what was seen. */

/** A line of some 30 kB. */
const CONTAINERS_KEPT = 100;
const TYPES_KEPT = 30;
/** Of a program's own classes, those with most objects: a client that nobody closes is small. */
const CLASSES_KEPT = 120;
const OWNERS: ReadonlySet<string> = new Set<OwnerKind>([
  'global',
  'class',
  'instance',
  'closure',
  'local',
  'default',
]);

/** The body of a snapshot of {@link SNAPSHOT.heap}. */
export function heapSnapshot(pid: number, look: HeapLook): object {
  const { containers, leastEntries } = look;
  const kept = containers.slice(0, CONTAINERS_KEPT);
  return {
    pid,
    ...look,
    types: typesKept(look.types),
    containers: kept,
    // What is left out may have as many entries as the largest that is.
    leastEntries: Math.max(
      leastEntries,
      ...containers.slice(CONTAINERS_KEPT).map(({ entries }) => entries),
    ),
  };
}

function typesKept(types: readonly HeapTypeCount[]): readonly HeapTypeCount[] {
  const classes = types
    .slice(TYPES_KEPT)
    .filter(({ type }) => type.includes('.'))
    .toSorted((a, b) => b.count - a.count);
  return [...types.slice(0, TYPES_KEPT), ...classes.slice(0, CLASSES_KEPT)];
}

/** Reads such a body, which may be anybody's; null where it is not one. */
export function readHeapSnapshot(
  at: Seconds,
  body: unknown,
): { readonly pid: number; readonly look: HeapLook } | null {
  if (!isRecord(body) || !Array.isArray(body['containers']) || !Array.isArray(body['types']))
    return null;
  const pid = numberOf(body['pid']);
  if (pid === null) return null;
  return {
    pid,
    look: {
      at,
      duration: numberOf(body['duration']) ?? 0,
      objects: numberOf(body['objects']) ?? 0,
      bytes: numberOf(body['bytes']) ?? 0,
      resident: numberOf(body['resident']),
      types: body['types'].flatMap((type: unknown) => typeOf(type) ?? []),
      containers: body['containers'].flatMap((one: unknown) => containerOf(one) ?? []),
      leastEntries: numberOf(body['leastEntries']) ?? 0,
      broken: numberOf(body['broken']) ?? 0,
      repaired: numberOf(body['repaired']) ?? 0,
      ...(body['onlyReachable'] === true ? { onlyReachable: true } : {}),
      lacking: textOf(body['lacking']),
    },
  };
}

function typeOf(value: unknown): HeapTypeCount | null {
  if (!isRecord(value)) return null;
  const type = textOf(value['type']);
  const count = numberOf(value['count']);
  const bytes = numberOf(value['bytes']);
  if (type === null || count === null || bytes === null) return null;
  const code = codeOf(value['code']);
  return { type, count, bytes, ...(code === null ? {} : { code }) };
}

function codeOf(value: unknown): HeapCode | null {
  if (!isRecord(value)) return null;
  const name = textOf(value['function']);
  const file = textOf(value['file']);
  const line = numberOf(value['line']);
  const share = numberOf(value['share']);
  return name === null || file === null || line === null || share === null
    ? null
    : { function: name, file, line, share };
}

function containerOf(value: unknown): HeapContainer | null {
  if (!isRecord(value)) return null;
  const id = textOf(value['id']);
  const type = textOf(value['type']);
  const entries = numberOf(value['entries']);
  const bytes = numberOf(value['bytes']);
  if (id === null || type === null || entries === null || bytes === null) return null;
  return { id, type, entries, bytes, content: textOf(value['content']), at: pathOf(value['at']) };
}

function pathOf(value: unknown): HeapPath | null {
  if (!isRecord(value)) return null;
  const path = textOf(value['path']);
  const owner = textOf(value['owner']);
  if (path === null || owner === null || !isOwner(owner)) return null;
  return {
    path,
    owner,
    module: textOf(value['module']),
    file: textOf(value['file']),
    line: numberOf(value['line']),
    holder: holderOf(value['holder']),
  };
}

function holderOf(value: unknown): HeapHolder | null {
  const name = isRecord(value) ? textOf(value['name']) : null;
  return isRecord(value) && name !== null ? { name, file: textOf(value['file']) } : null;
}

function isOwner(text: string): text is OwnerKind {
  return OWNERS.has(text);
}

function numberOf(value: unknown): number | null {
  return typeof value === 'number' && Number.isFinite(value) ? value : null;
}

function textOf(value: unknown): string | null {
  return typeof value === 'string' ? value : null;
}
