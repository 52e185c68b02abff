import { TraceError } from '../core/errors.ts';
import { EXIT } from '../core/exit-code.ts';
import { printable } from '../core/text.ts';
import { listProcesses, readCommandLine, readStat } from './proc.ts';
import { hasEnded, isKernelThread, type ProcStat } from './proc-parse.ts';
import { hiddenProcesses } from './permission-remedies.ts';
import { titleOf } from './target-title.ts';

/** Finding a process by what it is called (`--match`). */

/** trace and the processes it was started from (shell, sudo, npx): their command lines quote the pattern, so they always match. */
export function ownFamily(): ReadonlySet<number> {
  const family = new Set([process.pid]);
  for (let pid = process.ppid; pid > 0 && !family.has(pid);) {
    family.add(pid);
    pid = readStat(pid)?.parent ?? 0;
  }
  return family;
}

/** `/…/` and `/…/i` are regular expressions; anything else is found anywhere in the title, whatever its case. */
function parsePattern(pattern: string): (title: string) => boolean {
  const shown = printable(pattern, 60);
  if (pattern === '')
    throw new TraceError('ERR_MATCH_INVALID', 'the pattern of --match is empty', {
      exitCode: EXIT.usage,
      remedy: 'Give a part of the command line, e.g. --match "uvicorn app:main".',
    });
  const expression = /^\/(.+)\/([imsu]*)$/s.exec(pattern);
  if (expression === null) {
    const wanted = pattern.toLowerCase();
    return (title) => title.toLowerCase().includes(wanted);
  }
  try {
    const matcher = new RegExp(expression[1] ?? '', expression[2] ?? '');
    return (title) => matcher.test(title);
  } catch (error) {
    throw new TraceError('ERR_MATCH_INVALID', `${shown} is not a regular expression`, {
      exitCode: EXIT.usage,
      remedy: 'Correct it, or leave out the slashes to search for the text itself.',
      cause: error,
    });
  }
}

/** The living processes whose command line (else name) matches, least pid first. Throws ERR_MATCH_INVALID. */
export function findMatches(pattern: string): readonly ProcStat[] {
  const matches = parsePattern(pattern);
  const family = ownFamily();
  return listProcesses().filter((stat) => {
    if (family.has(stat.pid) || hasEnded(stat) || isKernelThread(stat)) return false;
    const commandLine = readCommandLine(stat.pid);
    return matches(commandLine.length === 0 ? stat.comm : commandLine.join(' '));
  });
}

export function noMatchError(pattern: string): TraceError {
  const hidden = hiddenProcesses();
  return new TraceError('ERR_MATCH_NONE', `no process matches '${printable(pattern, 60)}'`, {
    exitCode: EXIT.notFound,
    remedy: `${hidden === null ? '' : `${hidden}\n`}Run \`trace attach\` to list what can be attached to, with titles.`,
  });
}

/** So many hits are listed, the rest counted: what fits above a prompt. */
const LISTED = 10;

export function ambiguousError(pattern: string, hits: readonly ProcStat[]): TraceError {
  const shown = hits.slice(0, LISTED).map(({ pid, comm, parent }) => {
    const child = hits.some((other) => other.pid === parent) ? ` (child of ${parent})` : '';
    return `  ${String(pid).padStart(7)}  ${printable(titleOf(pid, comm), 80)}${child}`;
  });
  if (hits.length > LISTED) shown.push(`  and ${hits.length - LISTED} more`);
  return new TraceError(
    'ERR_MATCH_SEVERAL',
    `${hits.length} processes match '${printable(pattern, 60)}'`,
    {
      exitCode: EXIT.usage,
      remedy: `${shown.join('\n')}\nName one by its pid, make the pattern longer, or take each with --all.`,
    },
  );
}
