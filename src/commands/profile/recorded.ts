import { weightedStacks, numberAttribute, textAttribute } from '../../analysis/attributes.ts';
import { usageError } from '../../core/errors.ts';
import { ProfileBuilder } from '../../core/profile.ts';
import { ATTR, SPAN } from '../../core/semconv.ts';
import type { ProfileReport } from '../../report/profile/report.ts';
import { readAnalysed } from '../recordings/analysed.ts';
import { toolVersion } from '../version.ts';
import type { ProfileOptions } from './options.ts';

/** `trace profile <recording>`: the stacks that a recording holds, those of blocked turns, as a profile in every format. */

/** Counts are milliseconds: a recording keeps how long each stack stood, not how often it was looked at. */
const COUNTS_A_SECOND = 1000;

/** Throws a TraceError where there is no such recording, or it cannot say what was asked. */
export async function recordedProfile(
  path: string,
  { mode, top }: Pick<ProfileOptions, 'mode' | 'top'>,
  cwd: string,
): Promise<ProfileReport> {
  if (mode !== 'blocked')
    throw usageError(
      `a recording holds the stacks of blocked turns, not those of --mode ${mode}`,
      'Leave --mode out, or profile the process itself: trace profile <pid>',
    );
  const { view } = await readAnalysed('profile', [path], cwd);
  const builder = new ProfileBuilder();
  const { startedAt, targets } = view.start;
  const spans = view.spans(SPAN.blocked);
  let withoutStack = 0;
  for (const { attributes, from, to } of spans) {
    const pid = numberAttribute(attributes, ATTR.pid) ?? 0;
    const tid = numberAttribute(attributes, ATTR.threadId) ?? pid;
    const name = textAttribute(attributes, ATTR.threadName) ?? String(tid);
    const stacks = weightedStacks(view, attributes);
    const thread = builder.thread({
      pid,
      tid,
      name,
      onCpu: null,
      runQueueWait: null,
      gilWait: null,
    });
    const whole = stacks.reduce((sum, { weight }) => sum + weight, 0);
    if (whole <= 0) {
      withoutStack++;
      continue;
    }
    // The span's time in the parts that its stacks had of it; in which order they came is not kept.
    let at = from - startedAt;
    for (const { frames, weight } of stacks) {
      const lasted = ((to - from) * weight) / whole;
      const count = Math.max(1, Math.round(lasted * COUNTS_A_SECOND));
      const stack = builder.stack(frames);
      builder.run({ thread, stack, from: at, to: at + lasted, count, weight: lasted });
      at += lasted;
    }
  }
  const notes = [
    ...view.problems,
    ...(withoutStack > 0
      ? [`${withoutStack} of ${spans.length} blocked turns have no stack and are not in it.`]
      : []),
  ];
  return {
    toolVersion: toolVersion(),
    profile: builder.build({ mode, startedAt, duration: view.endedAt - startedAt }),
    targets,
    quality: {
      rounds: 0,
      late: view.end?.late ?? 0,
      samples: 0,
      partial: 0,
      errors: {},
      withoutCode: 0,
      askedRate: COUNTS_A_SECOND,
      rate: COUNTS_A_SECOND,
      loweredFor: null,
      maxOverhead: 0,
      ownCpu: view.end?.ownCpuRatio ?? 0,
      targetPaused: view.end?.targetPaused ?? 0,
    },
    cpu: new Map(),
    exact: null,
    native: null,
    recording: { path, blocks: spans.length },
    notes,
    interrupted: view.end?.interrupted ?? false,
    reason: 'recording',
    top,
  };
}
