import type { RequestRecord, StageCourse } from '../../core/load-types.ts';
import type { Seconds } from '../../core/types.ts';

/** A stage over time in a bounded number of windows: once there are too many, each two become one. */

/** A stage of ten seconds has 40 windows then: enough for a slope that is tested against chance (30). */
const FINEST: Seconds = 0.25;
/** 512 windows hold 128 s at the finest width; after an hour they are 8 s wide. */
const MOST_WINDOWS = 512;

const SERIES = ['scheduled', 'succeeded', 'ttft', 'ended'] as const;
type SeriesName = (typeof SERIES)[number];

function bySeries(of: (name: SeriesName) => number[]): Record<SeriesName, number[]> {
  return {
    scheduled: of('scheduled'),
    succeeded: of('succeeded'),
    ttft: of('ttft'),
    ended: of('ended'),
  };
}

/** A course being filled; times are from the beginning of the stage. */
export class CourseTally {
  #width = FINEST;
  readonly #series = bySeries(() => []);

  add(record: RequestRecord, from: Seconds): void {
    // In a closed loop the first request of a slot may have been due before the stage was said to begin.
    const scheduled = Math.max(0, record.scheduledAt - from);
    const ended = Math.max(0, record.endedAt - from);
    while (Math.max(scheduled, ended) >= this.#width * MOST_WINDOWS) this.#coarsen();
    this.#count('scheduled', scheduled, 1);
    this.#count('ended', ended, 1);
    if (record.error !== null || record.firstOutputAt === null) return;
    this.#count('succeeded', scheduled, 1);
    this.#count('ttft', scheduled, record.firstOutputAt - record.scheduledAt);
  }

  value(): StageCourse {
    return { width: this.#width, ...bySeries((name) => [...this.#series[name]]) };
  }

  #count(name: SeriesName, at: Seconds, by: number): void {
    const series = this.#series[name];
    const window = Math.floor(at / this.#width);
    while (series.length <= window) series.push(0);
    series[window] = (series[window] ?? 0) + by;
  }

  #coarsen(): void {
    this.#width *= 2;
    for (const name of SERIES) this.#series[name] = halved(this.#series[name]);
  }
}

export const EMPTY_COURSE: StageCourse = { width: FINEST, ...bySeries(() => []) };

/** The course of several machines' parts of one stage, each from its own beginning, at the widest of their widths. */
export function mergeCourses(courses: readonly StageCourse[]): StageCourse {
  const width = Math.max(FINEST, ...courses.map((course) => course.width));
  const sum = (name: SeriesName): number[] => {
    const total: number[] = [];
    for (const course of courses) {
      let series: readonly number[] = course[name];
      for (let w = course.width; w < width; w *= 2) series = halved(series);
      series.forEach((value, i) => {
        total[i] = (total[i] ?? 0) + value;
      });
    }
    return total;
  };
  return { width, ...bySeries(sum) };
}

function halved(series: readonly number[]): number[] {
  return Array.from(
    { length: Math.ceil(series.length / 2) },
    (_, i) => (series[2 * i] ?? 0) + (series[2 * i + 1] ?? 0),
  );
}
