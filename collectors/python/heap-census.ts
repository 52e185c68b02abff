import type { HeapTypeCount } from '../../src/core/heap-look.ts';
import type { HeapOrigins } from './heap-origins.ts';
import type { HeapPaths } from './heap-path.ts';
import type { HeapType } from './heap-types.ts';

/** What a walk over all objects counts. */

const TYPE_LIMIT = 1000;

/** A container of size. */
interface Found {
  readonly address: number;
  readonly type: HeapType;
  readonly entries: number;
}

/** The objects of one walk, counted. */
export interface Census {
  readonly counts: Map<HeapType, { count: number; bytes: number }>;
  readonly containers: Found[];
  objects: number;
  bytes: number;
}

export function emptyCensus(): Census {
  return { counts: new Map(), containers: [], objects: 0, bytes: 0 };
}

/** Its types, those with most bytes first, each with the code behind it where there is one. */
export function typesOf(
  census: Census,
  paths: HeapPaths,
  origins: HeapOrigins,
): readonly HeapTypeCount[] {
  return [...census.counts]
    .map(([type, { count, bytes }]) => {
      const code = origins.of(type);
      return { type: paths.nameOf(type), count, bytes, ...(code === null ? {} : { code }) };
    })
    .sort((a, b) => b.bytes - a.bytes)
    .slice(0, TYPE_LIMIT);
}
