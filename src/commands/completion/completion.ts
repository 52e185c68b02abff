import { usageError } from '../../core/errors.ts';
import { EXIT, type ExitCode } from '../../core/exit-code.ts';
import type { Command, CommandContext } from '../command-line/command.ts';
import { bashScript } from './bash.ts';
import { fishScript } from './fish.ts';
import { completionModel, type CompletionModel } from './model.ts';
import { completionUsage, type Shell, SHELLS } from './options.ts';
import { zshScript } from './zsh.ts';
import { parseChoice } from '../command-line/parse.ts';

/** `trace completion <shell>`: a script made from the registry and the option tables. */
export const completionCommand: Command = { ...completionUsage, run };

const SCRIPTS: Readonly<Record<Shell, (model: CompletionModel) => string>> = {
  bash: bashScript,
  zsh: zshScript,
  fish: fishScript,
};

async function run({ positionals, environment }: CommandContext): Promise<ExitCode> {
  const [name, another] = positionals;
  if (name === undefined || another !== undefined)
    throw usageError(
      name === undefined ? 'no shell named' : 'one shell at a time',
      `trace completion ${SHELLS.join('|')}`,
    );
  const shell = parseChoice(name, SHELLS, 'completion');
  environment.stdout.write(SCRIPTS[shell](await completionModel()));
  return EXIT.ok;
}
