import type { Profile, ProfileEntry, ProfileRun } from '../../core/profile.ts';
import type { Frame } from '../../core/types.ts';
import { outside } from '../layout.ts';
import type { ProfileReport } from './report.ts';

/**
 * The profile in speedscope's own format (https://www.speedscope.app/file-format-schema.json): one sampled profile a thread, in the order of
 * time where that is known.
 */

const SCHEMA = 'https://www.speedscope.app/file-format-schema.json';

/** The file's content. */
export function renderSpeedscope({ profile, targets, toolVersion }: ProfileReport): string {
  const frames = new Map<string, { index: number; frame: Frame }>();
  const indexOf = (frame: Frame): number => {
    const key = `${frame.function}\n${frame.file}\n${frame.line}`;
    const known = frames.get(key) ?? { index: frames.size, frame };
    frames.set(key, known);
    return known.index;
  };
  // Outermost first.
  const stacks = profile.stacks.map((stack) => stack.toReversed().map(indexOf));
  const several = targets.length > 1;
  const profiles = profile.threads.flatMap(({ pid, name }, thread) => {
    const seen = entriesOf(profile, thread);
    if (seen.length === 0) return [];
    const weights = seen.map(({ weight }) => weight);
    return [
      {
        type: 'sampled',
        name: outside(several ? `${pid} ${name}` : name, 100),
        unit: 'seconds',
        startValue: 0,
        endValue: weights.reduce((sum, one) => sum + one, 0),
        samples: seen.map(({ stack }) => stacks[stack] ?? []),
        weights,
      },
    ];
  });
  return `${JSON.stringify({
    $schema: SCHEMA,
    exporter: `tracewright ${toolVersion}`,
    name: outside(
      `${profile.mode} profile of ${targets.map(({ title }) => title).join(', ')}`,
      200,
    ),
    activeProfileIndex: 0,
    shared: {
      frames: [...frames.values()].map(({ frame: { function: name, file, line } }) => ({
        name: outside(name, 400),
        ...(file === '' ? {} : { file: outside(file, 1024) }),
        ...(line === null ? {} : { line }),
      })),
    },
    profiles,
  })}\n`;
}

/** Runs in time; where too many were seen to keep all, sums by stack. */
function entriesOf(profile: Profile, thread: number): readonly (ProfileRun | ProfileEntry)[] {
  const list =
    profile.runsDropped > 0 || profile.runs.length === 0 ? profile.entries : profile.runs;
  return list.filter((one) => one.thread === thread);
}
