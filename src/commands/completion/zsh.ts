import type { Completes } from '../command-line/command.ts';
import type { CompletionModel, FlagModel, VerbModel } from './model.ts';

/** The script for zsh 5 and later: to be sourced after compinit, or put into `fpath` as `_trace`. */
export function zshScript({ verbs, flags, programs, processPattern }: CompletionModel): string {
  return `#compdef ${programs.join(' ')}
# zsh completion for trace, made by: trace completion zsh

_trace_processes() {
  local file first second title
  local -a found
  for file in /proc/<->/cmdline(N); do
    first='' second=''
    { IFS= read -r -d '' first; IFS= read -r -d '' second } 2>/dev/null <$file
    title="\${first:t} \${second:t}"
    [[ \${title:l} =~ '${processPattern}' ]] || continue
    # What is assigned or asked for may be a credential.
    [[ $second == (*=*|*://*) ]] && title=\${first:t}
    # Titles belong to others: nothing that a terminal would obey.
    found+=("\${\${file#/proc/}%/cmdline}:\${title//[^[:print:]]/?}")
  done
  _describe -t processes process found
}

_trace() {
  local curcontext="$curcontext" state line
  local -A opt_args
  local -a verbs
  verbs=(
${verbs.map(({ name, summary }) => `    ${quote(`${name}:${summary}`)}`).join('\n')}
  )
  _arguments -C \\
${flags.map((flag) => `    ${spec(flag)} \\`).join('\n')}
    '1:verb:->verb' '*::argument:->argument' && return 0
  case $state in
    verb) _describe -t verbs verb verbs ;;
    argument)
      case $line[1] in
${verbs.map(verbCase).join('\n')}
      esac ;;
  esac
}

if [[ $funcstack[1] == _trace ]]; then
  _trace "$@"
else
  compdef _trace ${programs.join(' ')}
fi
`;
}

function verbCase({ name, argument, flags }: VerbModel): string {
  const specs = [...flags.map(spec), `'1:${action('argument', argument)}'`];
  return `        ${name}) _arguments \\\n${specs.map((one) => `          ${one}`).join(' \\\n')} ;;`;
}

/** One option for `_arguments`: its names exclude each other, its value may follow after a space or the sign. */
function spec({ long, short, value, description }: FlagModel): string {
  const shown = description.replace(/[[\]\\]/g, '\\$&');
  const tail = quote(`[${shown}]${value === null ? '' : `:${action(long, value)}`}`);
  const name = value === null ? `--${long}` : `--${long}=`;
  if (short === null) return `${name}${tail}`;
  return `'(-${short} --${long})'{-${short}${value === null ? '' : '+'},${name}}${tail}`;
}

function action(label: string, completes: Completes): string {
  if (completes === 'process') return `${label}:_trace_processes`;
  if (completes === 'folder') return `${label}:_files -/`;
  if (completes === 'file') return `${label}:_files`;
  if (completes === 'command') return `${label}:_command_names -e`;
  if (completes === 'text') return `${label}: `;
  return `${label}:(${completes.join(' ')})`;
}

function quote(text: string): string {
  return `'${text.replaceAll("'", "'\\''")}'`;
}
