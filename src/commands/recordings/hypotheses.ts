import { hypothesesOf } from '../../analysis/hypotheses/hypotheses.ts';
import { EXIT, type ExitCode } from '../../core/exit-code.ts';
import { hypothesesLine, renderHypotheses, renderHypothesesJson } from '../../report/hypotheses.ts';
import { decideSurface } from '../../report/style.ts';
import { chooseFormat } from '../attach/options.ts';
import type { Command, CommandContext } from '../command-line/command.ts';
import { toolVersion } from '../version.ts';
import { readAnalysed } from './analysed.ts';
import { hypothesesUsage } from './hypotheses-options.ts';
import { chooseFinding } from './show.ts';
import { readVerdicts } from './verdict-files.ts';

/** `trace hypotheses <recording>`: what else could have caused what was found, ranked. */
export const hypothesesCommand: Command = { ...hypothesesUsage, run };

async function run({ values, positionals, environment }: CommandContext): Promise<ExitCode> {
  const format = chooseFormat(values);
  const { stdout, env, cwd } = environment;
  const { path, id, view, findings } = await readAnalysed('hypotheses', positionals, cwd);
  const [main] = chooseFinding(findings, id, path);
  const hypotheses = hypothesesOf(view, findings, {
    recording: path,
    finding: id,
    verdicts: await readVerdicts(values['verdict'], cwd),
  });
  const explained = { recording: path, finding: main ?? null, hypotheses };
  environment.onResult?.({
    summary: hypothesesLine(hypotheses) ?? 'nothing was found that needs an explanation',
    link: main === undefined ? path : `${path}#${main.id}`,
  });
  const { isTTY, columns } = stdout;
  const surface = decideSurface({ env, isTTY, columns, noColor: values['no-color'] === true });
  stdout.write(
    format === 'json'
      ? renderHypothesesJson(explained, toolVersion())
      : renderHypotheses(explained, surface),
  );
  return EXIT.ok;
}
