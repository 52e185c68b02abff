import { ATTR, EVENT, SPAN } from '../core/semconv.ts';
import type { Attributes, Event, Seconds, Span } from '../core/types.ts';

/**
 * One span or event for many of the same kind and place, as Elastic APM's composite spans are: the worst of them, with the sums of all. So
 * a day of blocks has the totals it had, and the worst of each stretch in full. Pure.
 */

/** Stacks kept with one event, heaviest first; as many as a sampler puts there. */
const STACKS = 32;

const COMPOSITE_SPANS: ReadonlySet<string> = new Set([SPAN.blocked, SPAN.busy]);

/** What spans must have in common to become one; null for a span that stands for itself: a request, another program's. */
export function spanGroup({ name, attributes, context }: Span): string | null {
  if (context !== undefined || !COMPOSITE_SPANS.has(name)) return null;
  const place = attributes[ATTR.codeFunctionName] ?? attributes[ATTR.mechanism];
  const { [ATTR.pid]: pid, [ATTR.threadId]: thread, [ATTR.starved]: starved } = attributes;
  return [pid, thread, starved, place, attributes[ATTR.codeFilePath]].map(String).join('\n');
}

/** The longer of two spans, standing for both. */
export function joinSpans(a: Span, b: Span): Span {
  const longer = lengthOf(b) > lengthOf(a) ? b : a;
  const sumOf = (of: (span: Span) => number): number => of(a) + of(b);
  return {
    ...longer,
    attributes: {
      ...longer.attributes,
      [ATTR.compositeCount]: sumOf(({ attributes }) => number(attributes, ATTR.compositeCount, 1)),
      [ATTR.compositeSum]: sumOf((span) =>
        number(span.attributes, ATTR.compositeSum, lengthOf(span)),
      ),
      [ATTR.compositeOnCpu]: sumOf(({ attributes }) =>
        number(attributes, ATTR.compositeOnCpu, number(attributes, ATTR.onCpu, 0)),
      ),
      [ATTR.compositeRunQueueWait]: sumOf(({ attributes }) =>
        number(attributes, ATTR.compositeRunQueueWait, number(attributes, ATTR.runQueueWait, 0)),
      ),
    },
  };
}

/** The middle of its interval, where it has one. */
export function lengthOf({ from, to, attributes }: Span): Seconds {
  const max = number(attributes, ATTR.durationMax, to - from);
  return (number(attributes, ATTR.durationMin, max) + max) / 2;
}

/** What seconds of a busy thread must have in common to become one; null for any other event. */
export function eventGroup({ name, attributes = {} }: Event): string | null {
  return name === EVENT.activity
    ? `${String(attributes[ATTR.pid])}\n${String(attributes[ATTR.threadId])}`
    : null;
}

/** Two stretches of a busy thread as one: shares are the means over all seconds, counts and stacks the sums. */
export function joinEvents(a: Event, b: Event): Event {
  const [of, and] = [a.attributes ?? {}, b.attributes ?? {}];
  const [n, m] = [of, and].map((one) => number(one, ATTR.compositeCount, 1)) as [number, number];
  const mean = (key: string): number =>
    (number(of, key, 0) * n + number(and, key, 0) * m) / (n + m);
  const joined: Record<string, Attributes[string]> = { ...of, ...and };
  joined[ATTR.compositeCount] = n + m;
  for (const key of [ATTR.activityOnCpu, ATTR.activityRunQueueWait]) joined[key] = mean(key);
  for (const key of [ATTR.activityStackSamples, ATTR.activityIterations, ATTR.activityEvents]) {
    if (typeof of[key] === 'number' && typeof and[key] === 'number')
      joined[key] = of[key] + and[key];
    // What was not counted in each of them is not known of all.
    else delete joined[key];
  }
  joined[ATTR.stackShares] = joinShares([of, and].map((one) => one[ATTR.stackShares]));
  return { ...(b.at > a.at ? b : a), attributes: joined };
}

function joinShares(lists: readonly (Attributes[string] | undefined)[]): readonly string[] {
  const weights = new Map<string, number>();
  for (const entry of lists.flatMap((list) => (Array.isArray(list) ? (list as string[]) : []))) {
    const [id = '', weight = ''] = entry.split('=');
    weights.set(id, (weights.get(id) ?? 0) + (Number(weight) || 0));
  }
  const heaviest = [...weights].sort(([, a], [, b]) => b - a).slice(0, STACKS);
  return heaviest.map(([id, weight]) => `${id}=${Number(weight.toFixed(6))}`);
}

function number(attributes: Attributes, key: string, otherwise: number): number {
  const value = attributes[key];
  return typeof value === 'number' && Number.isFinite(value) ? value : otherwise;
}
