import type { Seconds } from '../core/types.ts';
import { Column } from './column.ts';

/** When readings were taken, kept once for all series that are read together: a collector gives dozens of them the same times. */

/** The times of a series: those of an axis, from this index on. */
export interface Times {
  readonly axis: Column;
  readonly from: number;
}

/** As many collectors of as many processes as read at about the same moment; a series that finds no axis among them makes its own. */
const RECENT = 64;

export class TimeAxes {
  /** Those that series may join, the last made first. */
  readonly #recent: Column[] = [];
  /** What the series before it went over to when its times were no longer those of its axis: others go the same way. */
  #parting: { readonly from: Times; readonly count: number; readonly axis: Column } | null = null;

  /** The times of a series of `count` readings so far (null before the first) after one more, which was taken `at`. */
  push(times: Times | null, count: number, at: Seconds): Times {
    if (times === null) return this.#join(at);
    const { axis, from } = times;
    const ahead = axis.length - from - count;
    if (ahead === 0) axis.push(at);
    else if (ahead !== 1 || axis.last !== at) return this.#part(times, count, at);
    return times;
  }

  /** The times of a series that has just these. */
  of(at: Float64Array): Times {
    const known = this.#recent.find((axis) => holds(axis, at));
    return { axis: known ?? this.#make(at), from: 0 };
  }

  #join(at: Seconds): Times {
    const known = this.#recent.find((axis) => axis.last === at);
    return known === undefined
      ? { axis: this.#make(Float64Array.of(at)), from: 0 }
      : { axis: known, from: known.length - 1 };
  }

  /** Others of its axis were read when this one was not. */
  #part(times: Times, count: number, at: Seconds): Times {
    const last = this.#parting;
    const isSameWay =
      last !== null &&
      last.from.axis === times.axis &&
      last.from.from === times.from &&
      last.count === count &&
      last.axis.length === count + 1 &&
      last.axis.last === at;
    if (isSameWay) return { axis: last.axis, from: 0 };
    const axis = this.#make(times.axis.values(times.from, times.from + count));
    axis.push(at);
    this.#parting = { from: times, count, axis };
    return { axis, from: 0 };
  }

  #make(at: Float64Array): Column {
    const axis = Column.of(at);
    this.#recent.unshift(axis);
    if (this.#recent.length > RECENT) this.#recent.pop();
    return axis;
  }
}

function holds(axis: Column, at: Float64Array): boolean {
  if (axis.length !== at.length || axis.last !== at.at(-1)) return false;
  return at.every((one, i) => axis.at(i) === one);
}
