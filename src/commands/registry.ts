import type { Command, Usage } from './command-line/command.ts';

/** A verb, loaded only when it is asked for: its help without what it needs to run. */
export interface Verb {
  readonly name: string;
  usage(): Promise<Usage>;
  command(): Promise<Command>;
  /** Verbs below it, in the order of its help: it does nothing without one of them. */
  readonly verbs?: readonly Verb[];
}

/** What `trace repro` is followed by. */
const REPRO_VERBS: readonly Verb[] = [
  {
    name: 'new',
    usage: async () => (await import('./repro/new/usage.ts')).reproNewUsage,
    command: async () => (await import('./repro/new/new.ts')).reproNewCommand,
  },
  {
    name: 'run',
    usage: async () => (await import('./repro/run/usage.ts')).reproRunUsage,
    command: async () => (await import('./repro/run/run.ts')).reproRunCommand,
  },
  {
    name: 'explore',
    usage: async () => (await import('./repro/explore/usage.ts')).reproExploreUsage,
    command: async () => (await import('./repro/explore/explore.ts')).reproExploreCommand,
  },
  {
    name: 'replay',
    usage: async () => (await import('./repro/replay/usage.ts')).reproReplayUsage,
    command: async () => (await import('./repro/replay/replay.ts')).reproReplayCommand,
  },
  {
    name: 'isolate',
    usage: async () => (await import('./repro/isolate/usage.ts')).reproIsolateUsage,
    command: async () => (await import('./repro/isolate/isolate.ts')).reproIsolateCommand,
  },
  {
    name: 'shrink',
    usage: async () => (await import('./repro/shrink/usage.ts')).reproShrinkUsage,
    command: async () => (await import('./repro/shrink/shrink.ts')).reproShrinkCommand,
  },
];

/** What `trace session` is followed by. */
const SESSION_VERBS: readonly Verb[] = [
  {
    name: 'start',
    usage: async () => (await import('./session/start.ts')).sessionStartUsage,
    command: async () => (await import('./session/start.ts')).sessionStartCommand,
  },
  {
    name: 'list',
    usage: async () => (await import('./session/list.ts')).sessionListUsage,
    command: async () => (await import('./session/list.ts')).sessionListCommand,
  },
  {
    name: 'status',
    usage: async () => (await import('./session/status.ts')).sessionStatusUsage,
    command: async () => (await import('./session/status.ts')).sessionStatusCommand,
  },
  {
    name: 'continue',
    usage: async () => (await import('./session/status.ts')).sessionContinueUsage,
    command: async () => (await import('./session/status.ts')).sessionContinueCommand,
  },
  {
    name: 'symptoms',
    usage: async () => (await import('./session/symptoms.ts')).sessionSymptomsUsage,
    command: async () => (await import('./session/symptoms.ts')).sessionSymptomsCommand,
  },
  {
    name: 'note',
    usage: async () => (await import('./session/note.ts')).sessionNoteUsage,
    command: async () => (await import('./session/note.ts')).sessionNoteCommand,
  },
  {
    name: 'evidence',
    usage: async () => (await import('./session/evidence.ts')).sessionEvidenceUsage,
    command: async () => (await import('./session/evidence.ts')).sessionEvidenceCommand,
  },
  {
    name: 'hypothesis',
    usage: async () => (await import('./session/hypothesis.ts')).sessionHypothesisUsage,
    command: async () => (await import('./session/hypothesis.ts')).sessionHypothesisCommand,
  },
  {
    name: 'focus',
    usage: async () => (await import('./session/focus.ts')).sessionFocusUsage,
    command: async () => (await import('./session/focus.ts')).sessionFocusCommand,
  },
  {
    name: 'reproduce',
    usage: async () => (await import('./session/reproduce.ts')).sessionReproduceUsage,
    command: async () => (await import('./session/reproduce.ts')).sessionReproduceCommand,
  },
  {
    name: 'tdd',
    usage: async () => (await import('./session/tdd.ts')).sessionTddUsage,
    command: async () => (await import('./session/tdd.ts')).sessionTddCommand,
  },
  {
    name: 'diagnose',
    usage: async () => (await import('./session/diagnose.ts')).sessionDiagnoseUsage,
    command: async () => (await import('./session/diagnose.ts')).sessionDiagnoseCommand,
  },
  {
    name: 'approve',
    usage: async () => (await import('./session/approve.ts')).sessionApproveUsage,
    command: async () => (await import('./session/approve.ts')).sessionApproveCommand,
  },
  {
    name: 'reject',
    usage: async () => (await import('./session/approve.ts')).sessionRejectUsage,
    command: async () => (await import('./session/approve.ts')).sessionRejectCommand,
  },
  {
    name: 'attempt',
    usage: async () => (await import('./session/attempt.ts')).sessionAttemptUsage,
    command: async () => (await import('./session/attempt.ts')).sessionAttemptCommand,
  },
  {
    name: 'resolve',
    usage: async () => (await import('./session/resolve.ts')).sessionResolveUsage,
    command: async () => (await import('./session/resolve.ts')).sessionResolveCommand,
  },
  {
    name: 'abandon',
    usage: async () => (await import('./session/end.ts')).sessionAbandonUsage,
    command: async () => (await import('./session/end.ts')).sessionAbandonCommand,
  },
  {
    name: 'reopen',
    usage: async () => (await import('./session/end.ts')).sessionReopenUsage,
    command: async () => (await import('./session/end.ts')).sessionReopenCommand,
  },
  {
    name: 'brief',
    usage: async () => (await import('./session/brief.ts')).sessionBriefUsage,
    command: async () => (await import('./session/brief.ts')).sessionBriefCommand,
  },
  {
    name: 'report',
    usage: async () => (await import('./session/report.ts')).sessionReportUsage,
    command: async () => (await import('./session/report.ts')).sessionReportCommand,
  },
  {
    name: 'backend',
    usage: async () => (await import('./session/backend.ts')).sessionBackendUsage,
    command: async () => (await import('./session/backend.ts')).sessionBackendCommand,
  },
];

/** A verb that changes sessions' files, which some projects want committed. */
const committed = (verb: Verb): Verb => ({
  ...verb,
  command: async () => (await import('./session/commit-docs.ts')).committing(await verb.command()),
});

/** Every verb, in the order of `trace --help`. */
export const VERBS: readonly Verb[] = [
  {
    name: 'attach',
    usage: async () => (await import('./attach/options.ts')).attachUsage,
    command: async () => (await import('./attach/attach.ts')).attachCommand,
  },
  {
    name: 'run',
    usage: async () => (await import('./run/options.ts')).runUsage,
    command: async () => (await import('./run/run.ts')).runCommand,
  },
  {
    name: 'tasks',
    usage: async () => (await import('./tasks/options.ts')).tasksUsage,
    command: async () => (await import('./tasks/tasks.ts')).tasksCommand,
  },
  {
    name: 'load',
    usage: async () => (await import('./load/usage.ts')).loadUsage,
    command: async () => (await import('./load/load.ts')).loadCommand,
  },
  {
    name: 'show',
    usage: async () => (await import('./recordings/show-options.ts')).showUsage,
    command: async () => (await import('./recordings/show.ts')).showCommand,
  },
  {
    name: 'hypotheses',
    usage: async () => (await import('./recordings/hypotheses-options.ts')).hypothesesUsage,
    command: async () => (await import('./recordings/hypotheses.ts')).hypothesesCommand,
  },
  {
    name: 'explain',
    usage: async () => (await import('./explain/options.ts')).explainUsage,
    command: async () => (await import('./explain/explain.ts')).explainCommand,
  },
  {
    name: 'profile',
    usage: async () => (await import('./profile/options.ts')).profileUsage,
    command: async () => (await import('./profile/profile.ts')).profileCommand,
  },
  {
    name: 'proxy',
    usage: async () => (await import('./proxy/options.ts')).proxyUsage,
    command: async () => (await import('./proxy/proxy.ts')).proxyCommand,
  },
  {
    name: 'ls',
    usage: async () => (await import('./recordings/ls-options.ts')).lsUsage,
    command: async () => (await import('./recordings/ls.ts')).lsCommand,
  },
  {
    name: 'clean',
    usage: async () => (await import('./recordings/clean-options.ts')).cleanUsage,
    command: async () => (await import('./recordings/clean.ts')).cleanCommand,
  },
  {
    name: 'repro',
    usage: async () => (await import('./repro/usage.ts')).reproUsage,
    command: async () => (await import('./repro/repro.ts')).reproCommand,
    verbs: REPRO_VERBS,
  },
  {
    name: 'session',
    usage: async () => (await import('./session/session.ts')).sessionUsage,
    command: async () => (await import('./session/session.ts')).sessionCommand,
    verbs: SESSION_VERBS.map(committed),
  },
  {
    name: 'heap',
    usage: async () => (await import('./heap/options.ts')).heapUsage,
    command: async () => (await import('./heap/heap.ts')).heapCommand,
  },
  {
    name: 'doctor',
    usage: async () => (await import('./doctor/options.ts')).doctorUsage,
    command: async () => (await import('./doctor/doctor.ts')).doctorCommand,
  },
  {
    name: 'cleanup',
    usage: async () => (await import('./cleanup/options.ts')).cleanupUsage,
    command: async () => (await import('./cleanup/cleanup.ts')).cleanupCommand,
  },
  {
    name: 'completion',
    usage: async () => (await import('./completion/options.ts')).completionUsage,
    command: async () => (await import('./completion/completion.ts')).completionCommand,
  },
];

/** Every verb and every verb below one, with the words that it is called by. */
export function everyVerb(): readonly { readonly words: readonly string[]; readonly verb: Verb }[] {
  return VERBS.flatMap((verb) => [
    { words: [verb.name], verb },
    ...(verb.verbs ?? []).map((below) => ({ words: [verb.name, below.name], verb: below })),
  ]);
}

/** A verb, or the one below it that the first argument names, with the arguments that are left. */
export function verbBelow(
  verb: Verb,
  args: readonly string[],
): { readonly verb: Verb; readonly args: readonly string[] } {
  const at = args.findIndex((word) => !word.startsWith('-'));
  const below = verb.verbs?.find(({ name }) => name === args[at]);
  if (below === undefined) return { verb, args };
  return { verb: below, args: [...args.slice(0, at), ...args.slice(at + 1)] };
}
