import type { Completes } from '../command-line/command.ts';
import type { CompletionModel, FlagModel } from './model.ts';

/** The script for fish 3 and later. */
export function fishScript({ verbs, flags, programs, processPattern }: CompletionModel): string {
  const [program = 'trace', ...others] = programs;
  const rows = verbs.flatMap(({ name, summary, argument, flags: own }) => [
    `complete -c ${program} -n __fish_use_subcommand -a ${name} -d ${quote(summary)}`,
    ...own.map((flag) => row(program, `__fish_seen_subcommand_from ${name}`, flag)),
    ...(argument === 'text'
      ? []
      : [
          `complete -c ${program} -n '__fish_seen_subcommand_from ${name}' -a ${quote(offer(argument))}`,
        ]),
  ]);
  return `# fish completion for trace, made by: trace completion fish

function __trace_processes
    for file in /proc/*/cmdline
        set -l pid (string replace -rf '^/proc/([0-9]+)/cmdline$' '$1' $file)
        or continue
        test -r $file
        or continue
        set -l words (begin; string split0 <$file; end 2>/dev/null)
        set -l title (string replace -r '.*/' '' -- $words[1..2] | string collect)
        # Titles belong to others: nothing that a terminal would obey.
        set title (string replace -ra '[^[:print:]]+' ' ' -- $title | string sub -l 60)
        if string match -qir '${processPattern}' -- "$title"
            # What is assigned or asked for may be a credential.
            if string match -qr '=|://' -- "$words[2]"
                set title (string replace -r ' .*' '' -- $title)
            end
            printf '%s\\t%s\\n' $pid "$title"
        end
    end
end

complete -c ${program} -f
${flags.map((flag) => row(program, '__fish_use_subcommand', flag)).join('\n')}
${rows.join('\n')}
${others.map((other) => `complete -c ${other} -w ${program}`).join('\n')}
`;
}

function row(program: string, condition: string, flag: FlagModel): string {
  const { long, short, value, description } = flag;
  const parts = [
    `complete -c ${program} -n ${quote(condition)}`,
    ...(short === null ? [] : [`-s ${short}`]),
    `-l ${long}`,
    ...(value === null ? [] : ['-x']),
    ...(value === null || value === 'text' ? [] : [`-a ${quote(offer(value))}`]),
    ...(description === '' ? [] : [`-d ${quote(description)}`]),
  ];
  return parts.join(' ');
}

function offer(completes: Completes): string {
  if (completes === 'process') return '(__trace_processes)';
  if (completes === 'folder') return '(__fish_complete_directories)';
  if (completes === 'file') return '(__fish_complete_path)';
  if (completes === 'command') return '(__fish_complete_command)';
  return completes === 'text' ? '' : completes.join(' ');
}

function quote(text: string): string {
  return `'${text.replace(/[\\']/g, '\\$&')}'`;
}
