import { COMMON_OPTIONS, type Usage } from '../command-line/command.ts';

/** The shells that there is a script for. */
export const SHELLS = ['bash', 'zsh', 'fish'] as const;
export type Shell = (typeof SHELLS)[number];

const help = `trace completion - print the completion script for a shell

Usage:
  trace completion <shell>

<shell> is bash, zsh or fish. The script completes verbs, flags, their values,
and for attach and doctor the processes that look like Python or Node servers.
It is made from the tables that trace itself reads its command line by; make it
anew after an update. Completing starts no trace: the shell reads /proc itself.

  bash   source <(trace completion bash)                   in ~/.bashrc
  zsh    source <(trace completion zsh)                    in ~/.zshrc, after
                                                           compinit
  fish   trace completion fish | source                    in config.fish

Options:
  -q, --quiet            nothing on stderr but errors
  -v, --verbose          errors with their code and cause
      --no-color         no colour

Exit codes:
  0    printed
  2    wrong usage
  70   a bug in trace

Examples:
  trace completion bash
  trace completion fish | source

More: docs/completion.md says where shells look for scripts by themselves.
`;

/** `trace completion` as its help shows it. */
export const completionUsage: Usage = {
  name: 'completion',
  summary: 'Print the completion script for bash, zsh or fish',
  help,
  options: COMMON_OPTIONS,
  completes: { argument: SHELLS, values: {} },
};
