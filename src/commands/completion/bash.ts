import type { Completes } from '../command-line/command.ts';
import type { CompletionModel, FlagModel, VerbModel } from './model.ts';

/** The script for bash 4.4 and later. It starts no process: titles are read from /proc by the shell itself. */
export function bashScript({ verbs, flags, programs, processPattern }: CompletionModel): string {
  return `# bash completion for trace, made by: trace completion bash

_trace_processes() {
  local file pid first second title pattern='${processPattern}'
  for file in /proc/[0-9]*/cmdline; do
    first='' second=''
    { IFS= read -r -d '' first; IFS= read -r -d '' second; } 2>/dev/null <"$file"
    title="\${first##*/} \${second##*/}"
    [[ \${title,,} =~ $pattern ]] || continue
    pid=\${file#/proc/} pid=\${pid%/cmdline}
    [[ $pid == "$1"* ]] && COMPREPLY+=("$pid")
  done
}

_trace_folders() {
  compopt -o filenames 2>/dev/null
  mapfile -t COMPREPLY < <(compgen -d -- "$1")
}

_trace_files() {
  compopt -o filenames 2>/dev/null
  mapfile -t COMPREPLY < <(compgen -f -- "$1")
}

_trace_commands() {
  mapfile -t COMPREPLY < <(compgen -c -- "$1")
}

_trace_words() {
  mapfile -t COMPREPLY < <(compgen -W "$2" -- "$1")
}

_trace() {
  local cur=\${COMP_WORDS[COMP_CWORD]} prev=\${COMP_WORDS[COMP_CWORD-1]} verb='' at
  COMPREPLY=()
  # bash splits --flag=value at the sign.
  if [[ $cur == = ]]; then cur=''; elif [[ $prev == = ]]; then prev=\${COMP_WORDS[COMP_CWORD-2]}; fi
  for ((at = 1; at < COMP_CWORD; at++)); do
    if [[ \${COMP_WORDS[at]} != -* ]]; then verb=\${COMP_WORDS[at]}; break; fi
  done
  case "$verb $prev" in
${verbs.flatMap((verb) => verb.flags.flatMap((flag) => valueCase(verb, flag))).join('\n')}
  esac
  if [[ $cur == -* ]]; then
    case "$verb" in
      '') _trace_words "$cur" '${spelled(flags)}' ;;
${verbs.map(({ name, flags: own }) => `      ${name}) _trace_words "$cur" '${spelled(own)}' ;;`).join('\n')}
    esac
    return 0
  fi
  case "$verb" in
    '') _trace_words "$cur" '${verbs.map(({ name }) => name).join(' ')}' ;;
${verbs.map(({ name, argument }) => `    ${name}) ${offer(argument)} ;;`).join('\n')}
  esac
  return 0
}

complete -F _trace ${programs.join(' ')}
`;
}

function valueCase(verb: VerbModel, flag: FlagModel): readonly string[] {
  if (flag.value === null) return [];
  const names = [`--${flag.long}`, ...(flag.short === null ? [] : [`-${flag.short}`])];
  const patterns = names.map((name) => `'${verb.name} ${name}'`).join(' | ');
  return [`    ${patterns}) ${offer(flag.value)}; return 0 ;;`];
}

function offer(completes: Completes): string {
  if (completes === 'process') return '_trace_processes "$cur"';
  if (completes === 'folder') return '_trace_folders "$cur"';
  if (completes === 'file') return '_trace_files "$cur"';
  if (completes === 'command') return '_trace_commands "$cur"';
  // Any text: nothing can be offered, and a flag must not be.
  if (completes === 'text') return ':';
  return `_trace_words "$cur" '${completes.join(' ')}'`;
}

function spelled(flags: readonly FlagModel[]): string {
  return flags
    .flatMap(({ long, short }) => [`--${long}`, ...(short === null ? [] : [`-${short}`])])
    .join(' ');
}
