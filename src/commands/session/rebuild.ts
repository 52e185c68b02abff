import { TraceError, usageError } from '../../core/errors.ts';
import { EXIT } from '../../core/exit-code.ts';
import { printable, quoteForShell } from '../../core/text.ts';
import type { Backend } from '../../session/backends.ts';
import type { CommandContext } from '../command-line/command.ts';
import { readNotes } from './environment/notes.ts';
import { interviewAt } from './interview.ts';
import { isAtTerminal } from './opening.ts';

/** How a backend is made anew from its checkout: what the configuration says, else what notes say, else what its own documentation says. */

/** A command, and where in the checkout it is run. */
interface RebuildStep {
  readonly folder: string;
  readonly command: readonly string[];
}

/** What is run, and who says so. */
export interface Rebuild {
  readonly steps: readonly RebuildStep[];
  readonly origin: string;
}

/** As each project's page on building from source has it for who changes its Python code (llama.cpp: any), in November 2026. */
const DOCUMENTED: Readonly<Record<Backend, Rebuild>> = {
  vllm: {
    origin: 'as docs.vllm.ai says for Python code (C++ needs it without VLLM_USE_PRECOMPILED)',
    steps: [
      {
        folder: '.',
        command: [
          'env',
          'VLLM_USE_PRECOMPILED=1',
          'uv',
          'pip',
          'install',
          '--editable',
          '.',
          '--torch-backend=auto',
        ],
      },
    ],
  },
  sglang: {
    origin: 'as docs.sglang.io says',
    steps: [{ folder: '.', command: ['pip', 'install', '-e', 'python'] }],
  },
  trtllm: {
    origin: 'as nvidia.github.io/TensorRT-LLM says, within its container',
    steps: [
      { folder: '.', command: ['python3', './scripts/build_wheel.py'] },
      { folder: '.', command: ['pip', 'install', '-e', '.'] },
    ],
  },
  dynamo: {
    origin: 'as docs.nvidia.com/dynamo says',
    steps: [
      { folder: 'lib/bindings/python', command: ['maturin', 'develop', '--uv'] },
      { folder: '.', command: ['uv', 'pip', 'install', '-e', '.'] },
    ],
  },
  'llama.cpp': {
    origin: 'as its docs/build.md says',
    steps: [
      { folder: '.', command: ['cmake', '-B', 'build'] },
      { folder: '.', command: ['cmake', '--build', 'build', '--config', 'Release'] },
    ],
  },
};

/** `Rebuild vllm: \`make develop\`` in notes; the name may be left out. */
const NOTED = /^[\s>*#-]{0,8}rebuild(?:[ \t]+([a-z.]{3,12}))?[ \t]*:[ \t]*`([^`\n]{1,400})`/gim;

/** What makes the backend anew, shown and confirmed. Throws a TraceError where nobody confirms. */
export async function chooseRebuild(backend: Backend, context: CommandContext): Promise<Rebuild> {
  const { environment, values } = context;
  const { loadConfig } = await import('../../config/config.ts');
  const { rebuild, notes } = await loadConfig(environment);
  const configured = rebuild?.[backend];
  const noted =
    configured === undefined ? notedIn(readNotes(environment, notes ?? null), backend) : null;
  const isAsked = isAtTerminal(context) && values['yes'] !== true;
  const chosen =
    configured !== undefined
      ? { steps: configured.map(byShell), origin: 'as the configuration says' }
      : // Notes are data that others wrote: what they say is run when somebody has read it, and by no flag.
        noted !== null && isAsked
        ? noted
        : DOCUMENTED[backend];
  const lines = [`rebuild ${backend}, ${chosen.origin}:`, ...chosen.steps.map(stepText)];
  if (noted !== null && chosen !== noted)
    lines.push(
      `notes say otherwise (${noted.origin}: ${noted.steps.map(stepText).join('; ')}): asked for on a terminal, or put it into the configuration`,
    );
  if (!isAsked && values['yes'] !== true)
    throw usageError(
      'the rebuild has to be confirmed',
      [...lines, 'Add --yes to run it.'].join('\n'),
    );
  for (const line of lines) environment.stderr.write(`trace: ${line}\n`);
  if (isAsked) await confirm(context);
  return chosen;
}

/** `in lib: make all`. */
export function stepText({ folder, command }: RebuildStep): string {
  const [program, flag, text] = command;
  const shown =
    program === '/bin/sh' && flag === '-c' ? text : command.map(quoteForShell).join(' ');
  return `in ${folder}: ${printable(shown ?? '', 400)}`;
}

async function confirm({ environment }: CommandContext): Promise<void> {
  const interview = interviewAt(environment);
  const said = await interview.ask('Run it? [y/N] ');
  interview.close();
  if (/^\s*y(?:es)?\s*$/i.test(said ?? '')) return;
  throw new TraceError('ERR_NOT_CONFIRMED', 'nothing was run', { exitCode: EXIT.usage });
}

const byShell = (text: string): RebuildStep => ({ folder: '.', command: ['/bin/sh', '-c', text] });

/** The last line of notes that names the backend, else the last that names none. */
function notedIn(
  notes: readonly { readonly path: string; readonly text: string }[],
  backend: Backend,
): Rebuild | null {
  const found = notes.flatMap(({ path, text }) =>
    [...text.matchAll(NOTED)].map(([, name, command = '']) => ({ path, name, command })),
  );
  const one =
    found.findLast(({ name }) => name?.toLowerCase() === backend) ??
    found.findLast(({ name }) => name === undefined);
  if (one === undefined) return null;
  return { steps: [byShell(one.command)], origin: `as ${printable(one.path, 200)} says` };
}
