import { anchoredClock, takeAnchor } from '../../core/clock.ts';
import { TraceError } from '../../core/errors.ts';
import { EXIT, type ExitCode, exitCodeOfStop } from '../../core/exit-code.ts';
import type { Clock, Seconds } from '../../core/types.ts';
import type { Profile } from '../../core/profile.ts';
import type { ExactReport } from '../../report/profile/exact.ts';
import type { ProfileReport } from '../../report/profile/report.ts';
import { profileVerdict } from '../../report/profile/terminal.ts';
import { formatSeconds } from '../../core/units.ts';
import type { Command, CommandContext, Environment } from '../command-line/command.ts';
import { toolVersion } from '../version.ts';
import { StopSignals } from '../watching/stop-signals.ts';
import type { NativeSession } from './native.ts';
import { parseProfileOptions, type ProfileOptions, profileUsage } from './options.ts';
import { LOOK_EVERY, ProfileSession } from './session.ts';
import { writeProfile } from './write.ts';

/** `trace profile`: look at all threads many times a second, and say where they were. */
export const profileCommand: Command = { ...profileUsage, run };

/** What takes a profile: by reading memory and V8's profiler, or by the tools of `--native`. */
type Session = ProfileSession | NativeSession;

async function openSession(
  options: ProfileOptions,
  environment: Environment,
  clock: Clock,
): Promise<Session> {
  if (options.native === null) return new ProfileSession(options, environment, clock);
  const { NativeSession: Native } = await import('./native.ts');
  return new Native(options, environment, clock);
}

async function run({ values, positionals, environment }: CommandContext): Promise<ExitCode> {
  const options = parseProfileOptions(values, positionals);
  const { target } = options;
  if (target.by === 'recording') {
    const { recordedProfile } = await import('./recorded.ts');
    const recorded = await recordedProfile(target.path, options, environment.cwd);
    environment.onResult?.({ summary: profileVerdict(recorded), link: options.output });
    await writeProfile(recorded, options, environment);
    return EXIT.ok;
  }
  const stops = new StopSignals(environment);
  const anchor = takeAnchor();
  const session = await openSession(options, environment, anchoredClock(anchor));
  try {
    let report: ProfileReport;
    try {
      await session.open();
      announce(session, options, environment);
      report = await take(session, options, stops);
    } finally {
      await session.close();
    }
    if (report.reason === 'target-gone' && report.quality.rounds === 0) throw endedAtOnce();
    environment.onResult?.({ summary: profileVerdict(report), link: options.output });
    await writeProfile(report, options, environment);
    if (stops.received === null) return EXIT.ok;
    return exitCodeOfStop(stops.received);
  } finally {
    stops.close();
  }
}

/** Says that it has begun: ten seconds are long for who sees nothing. */
function announce(
  session: Session,
  { quiet, duration, mode, native }: ProfileOptions,
  { stderr }: Environment,
): void {
  if (quiet) return;
  const { length } = session.targets;
  const whom = length === 1 ? `pid ${session.targets[0]?.pid}` : `${length} processes`;
  const long = duration === null ? 'until Ctrl-C' : `for ${formatSeconds(duration)}`;
  stderr.write(`profiling ${whom} ${long} (${mode})\n`);
  if (native !== null) stderr.write('--native stops it for each look, some milliseconds or more\n');
}

async function take(
  session: Session,
  options: ProfileOptions,
  stops: StopSignals,
): Promise<ProfileReport> {
  const cpuBefore = process.cpuUsage();
  const { wall: startedAt, mono: from } = takeAnchor();
  session.begin();
  const reason = await untilOver(session, options.duration, stops);
  await session.end();
  const { user, system } = process.cpuUsage(cpuBefore);
  const elapsed = takeAnchor().mono - from;
  const profile = session.profile(startedAt);
  return {
    toolVersion: toolVersion(),
    profile,
    targets: session.targets,
    quality: session.quality((user + system) / 1e6 / elapsed),
    cpu: session.cpu,
    exact: session.exact === null ? null : named(session.exact, profile),
    native: session.native,
    recording: null,
    notes: session.notes,
    interrupted: reason === 'interrupted',
    reason,
    top: options.top,
  };
}

/** The kernel knows threads by its own names, cut after 15 letters: where the program's are known, with those. */
function named(exact: ExactReport, { threads }: Profile): ExactReport {
  const names = new Map(threads.map(({ tid, name }) => [tid, name]));
  return {
    ...exact,
    threads: exact.threads.map((one) => ({ ...one, name: names.get(one.tid) ?? one.name })),
  };
}

/** Waits for the end of the profile, looking once a second who has come and gone. */
function untilOver(
  session: Session,
  duration: Seconds | null,
  stops: StopSignals,
): Promise<'duration' | 'interrupted' | 'target-gone'> {
  return new Promise((resolve, reject) => {
    const end = (reason: 'duration' | 'interrupted' | 'target-gone'): void => {
      clearInterval(looking);
      clearTimeout(timer);
      release();
      resolve(reason);
    };
    const looking = setInterval(() => {
      session.look().then(() => {
        if (session.isOver()) end('target-gone');
        else if (session.isDone()) end('duration');
      }, reject);
    }, LOOK_EVERY * 1e3);
    const timer = duration === null ? undefined : setTimeout(() => end('duration'), duration * 1e3);
    const release = stops.listen(() => end('interrupted'));
  });
}

function endedAtOnce(): TraceError {
  return new TraceError('ERR_TARGET_GONE', 'the process ended before anything was seen of it', {
    exitCode: EXIT.notFound,
    remedy: 'Start it with trace run to watch it from its first moment.',
  });
}
