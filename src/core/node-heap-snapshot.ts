import type { HeapOpener, HeapSite, NodeHeapLook } from './node-heap.ts';
import type { Frame, Seconds } from './types.ts';
import { isRecord } from './record.ts';

/** What a Node process allocated and kept, as a recording keeps it: the largest sites. */

/** With eight frames each a line of some 30 kB. */
const SITES_KEPT = 40;
const FRAMES_KEPT = 8;
const OPENERS_KEPT = 16;

/** The body of a snapshot of {@link SNAPSHOT.nodeHeap}. */
export function nodeHeapSnapshot(pid: number, look: NodeHeapLook): object {
  const sites = look.sites
    .toSorted((a, b) => b.bytes - a.bytes)
    .slice(0, SITES_KEPT)
    .map(({ frames, bytes, samples }) => ({
      bytes,
      samples,
      frames: frames.slice(0, FRAMES_KEPT),
    }));
  const openers = (look.openers ?? [])
    .toSorted((a, b) => b.weight - a.weight)
    .slice(0, OPENERS_KEPT)
    .map(({ frames, weight }) => ({ weight, frames: frames.slice(0, FRAMES_KEPT) }));
  return { pid, ...look, sites, openers };
}

/** Reads such a body, which may be anybody's; null where it is not one. */
export function readNodeHeapSnapshot(
  at: Seconds,
  body: unknown,
): { readonly pid: number; readonly look: NodeHeapLook } | null {
  if (!isRecord(body) || !Array.isArray(body['sites'])) return null;
  const pid = numberOf(body['pid']);
  const used = numberOf(body['used']);
  if (pid === null || used === null) return null;
  return {
    pid,
    look: {
      at,
      held: numberOf(body['held']) ?? 0,
      used,
      committed: numberOf(body['committed']) ?? 0,
      resident: numberOf(body['resident']),
      sites: body['sites'].slice(0, SITES_KEPT).flatMap((site: unknown) => siteOf(site) ?? []),
      openers: listOf(body['openers'])
        .slice(0, OPENERS_KEPT)
        .flatMap((opener) => openerOf(opener) ?? []),
    },
  };
}

function openerOf(value: unknown): HeapOpener | null {
  if (!isRecord(value)) return null;
  const weight = numberOf(value['weight']);
  const frames = framesOf(value['frames']);
  return weight === null || frames.length === 0 ? null : { frames, weight };
}

function framesOf(value: unknown): readonly Frame[] {
  return listOf(value)
    .slice(0, FRAMES_KEPT)
    .flatMap((frame) => frameOf(frame) ?? []);
}

function listOf(value: unknown): readonly unknown[] {
  return Array.isArray(value) ? value : [];
}

function siteOf(value: unknown): HeapSite | null {
  if (!isRecord(value)) return null;
  const bytes = numberOf(value['bytes']);
  const frames = framesOf(value['frames']);
  if (bytes === null || frames.length === 0) return null;
  return { frames, bytes, samples: numberOf(value['samples']) ?? 0 };
}

function frameOf(value: unknown): Frame | null {
  if (!isRecord(value)) return null;
  const { function: name, file, line } = value;
  if (typeof name !== 'string' || typeof file !== 'string') return null;
  return { function: name, file, line: numberOf(line) };
}

function numberOf(value: unknown): number | null {
  return typeof value === 'number' && Number.isFinite(value) ? value : null;
}
