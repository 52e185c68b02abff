import { holds, type Dimension, type Operator } from '../core/comparison.ts';
import { toTargetInfo } from '../core/otlp-records.ts';
import { ATTR, EVENT, METRIC, SNAPSHOT, SPAN } from '../core/semconv.ts';
import type { Attributes, Histogram, Observation, Sample, Seconds, Span } from '../core/types.ts';
import { numberAttribute } from './attributes.ts';
import { GrowthWindow } from './growth-window.ts';

/** When a flight recorder writes: conditions on what is observed, and the watch that says when one of them comes to hold. Pure. */

/** One `--trigger`. */
export type TriggerCondition = ExitCondition | DelayCondition | LevelCondition | GrowthCondition;

interface ExitCondition {
  readonly kind: 'exit';
  /** As it was given. */
  readonly expression: string;
}
interface DelayCondition {
  readonly kind: 'delay';
  readonly expression: string;
  readonly operator: Operator;
  readonly limit: Seconds;
}
interface LevelCondition {
  readonly kind: 'level';
  readonly expression: string;
  readonly metric: string;
  readonly operator: Operator;
  /** In the metric's own unit. */
  readonly limit: number;
  /** How its values are shown. */
  readonly dimension: Dimension;
}
interface GrowthCondition {
  readonly kind: 'growth';
  readonly expression: string;
  readonly metric: string;
  readonly operator: Operator;
  /** What it has to grow by within the period. */
  readonly limit: number;
  readonly period: Seconds;
  readonly dimension: Dimension;
}

/** A condition that has come to hold. */
export interface Firing {
  readonly condition: TriggerCondition;
  readonly at: Seconds;
  /** What was compared, in the condition's unit; null where nothing was. */
  readonly value: number | null;
  /** The process it is about; null where the observation names none. */
  readonly pid: number | null;
  /** More than the number says: how the process ended. From outside. */
  readonly detail: string | null;
  /** False of a reading that tells of something that goes on, and will be told of again as a whole when it is over. */
  readonly isWhole: boolean;
}

/** Series, and processes that ended, remembered for each condition: a run of 50 processes has a few thousand of a metric by thread. */
const REMEMBERED = 4096;
const NONE: readonly Firing[] = [];

/** Watches for conditions. A level fires when it comes to hold, and again only after it did not; each block of the loop fires by itself. */
export class TriggerWatch {
  readonly #rules: readonly Rule[];
  readonly #byMetric = new Map<string, Rule[]>();
  readonly #exits: readonly Rule[];
  readonly #gone = new Set<number | null>();

  constructor(conditions: readonly TriggerCondition[]) {
    this.#rules = conditions.map((condition) => new Rule(condition));
    this.#exits = this.#rules.filter(({ condition }) => condition.kind === 'exit');
    for (const rule of this.#rules) {
      const { metric } = rule;
      if (metric !== null)
        this.#byMetric.set(metric, [...(this.#byMetric.get(metric) ?? []), rule]);
    }
  }

  /** What an observation sets off; hardly ever anything. */
  take(observation: Observation): readonly Firing[] {
    switch (observation.kind) {
      case 'sample':
      case 'histogram': {
        const rules = this.#byMetric.get(observation.metric);
        return rules === undefined ? NONE : rules.flatMap((rule) => rule.reading(observation));
      }
      case 'span':
        return observation.name === SPAN.blocked
          ? this.#rules.flatMap((rule) => rule.block(observation))
          : NONE;
      case 'event':
        return observation.name === EVENT.targetExit
          ? this.#exit(observation.at, pidOf(observation.attributes), observation.body)
          : NONE;
      case 'gap':
        return observation.reason === 'target-gone'
          ? this.#exit(observation.to, observation.pid ?? null, observation.detail)
          : NONE;
      case 'snapshot': {
        // A pid that was given again is another process, which may end too.
        if (observation.of === SNAPSHOT.target && this.#gone.size > 0)
          this.#gone.delete(toTargetInfo(observation.body)?.pid ?? null);
        return NONE;
      }
      case 'stack':
        return NONE;
    }
  }

  /** Conditions on something that was never read: they cannot have fired. */
  unread(): readonly TriggerCondition[] {
    return this.#rules
      .filter(({ condition, wasRead }) => condition.kind !== 'exit' && !wasRead)
      .map(({ condition }) => condition);
  }

  /** A collector may tell of the end of a process by an event, by a gap, or by both. */
  #exit(at: Seconds, pid: number | null, detail: string): readonly Firing[] {
    if (this.#exits.length === 0 || this.#gone.has(pid)) return NONE;
    remember(this.#gone, pid);
    return this.#exits.map(({ condition }) => firing(condition, { at, value: null, pid, detail }));
  }
}

/** One condition and what has to be remembered for it. */
class Rule {
  readonly condition: TriggerCondition;
  /** The metric whose readings it is about. */
  readonly metric: string | null;
  wasRead = false;
  /** Series for which it holds already. */
  readonly #holding = new Set<string>();
  readonly #growth = new Map<string, GrowthWindow>();
  /** When the last block that fired was over, by process: the second it fell into tells of it again. */
  readonly #blocks = new Map<number | null, Seconds>();

  constructor(condition: TriggerCondition) {
    this.condition = condition;
    this.metric =
      condition.kind === 'exit'
        ? null
        : condition.kind === 'delay'
          ? METRIC.loopDelay.name
          : condition.metric;
  }

  block(span: Span): readonly Firing[] {
    const { condition } = this;
    if (condition.kind !== 'delay') return NONE;
    this.wasRead = true;
    const value = span.to - span.from;
    if (!holds(value, condition.operator, condition.limit)) return NONE;
    const pid = pidOf(span.attributes);
    if (this.#blocks.size >= REMEMBERED) dropOldest(this.#blocks);
    this.#blocks.set(pid, span.to);
    return [firing(condition, { at: span.to, value, pid })];
  }

  reading(observation: Sample | Histogram): readonly Firing[] {
    const { condition } = this;
    if (condition.kind === 'exit') return NONE;
    this.wasRead = true;
    const isSample = observation.kind === 'sample';
    // An empty histogram has no greatest value.
    if (!isSample && observation.buckets.count === 0) return NONE;
    const at = isSample ? observation.at : observation.to;
    const reading = isSample ? observation.value : observation.buckets.max;
    const key = keyOf(observation.attributes);
    const value =
      condition.kind === 'growth'
        ? this.#growthOf(key, condition.period).add(at, reading)
        : reading;
    if (!holds(value, condition.operator, condition.limit)) {
      this.#holding.delete(key);
      return NONE;
    }
    if (this.#holding.has(key)) return NONE;
    remember(this.#holding, key);
    const pid = pidOf(observation.attributes);
    if (condition.kind !== 'delay') return [firing(condition, { at, value, pid })];
    const isTold = !isSample && (this.#blocks.get(pid) ?? -1) >= observation.from;
    // The age of a turn that still lasts: the turn itself is told of when it is over.
    return isTold ? NONE : [firing(condition, { at, value, pid, isWhole: false })];
  }

  #growthOf(key: string, period: Seconds): GrowthWindow {
    let window = this.#growth.get(key);
    if (window === undefined) {
      if (this.#growth.size >= REMEMBERED) dropOldest(this.#growth);
      this.#growth.set(key, (window = new GrowthWindow(period)));
    }
    return window;
  }
}

function firing(
  condition: TriggerCondition,
  what: Pick<Firing, 'at' | 'value' | 'pid'> & Partial<Firing>,
): Firing {
  return { detail: null, isWhole: true, ...what, condition };
}

function pidOf(attributes: Attributes | undefined): number | null {
  return numberAttribute(attributes, ATTR.pid);
}

function keyOf(attributes: Attributes | undefined): string {
  return attributes === undefined ? '' : JSON.stringify(attributes);
}

function remember<T>(set: Set<T>, item: T): void {
  if (set.size >= REMEMBERED) dropOldest(set);
  set.add(item);
}

function dropOldest<T>(of: { keys(): IterableIterator<T>; delete(key: T): boolean }): void {
  for (const oldest of of.keys()) {
    of.delete(oldest);
    return;
  }
}
