import type { Command, Usage } from './command-line/command.ts';

/** A verb, loaded only when it is asked for: its help without what it needs to run. */
export interface Verb {
  readonly name: string;
  usage(): Promise<Usage>;
  command(): Promise<Command>;
}

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
