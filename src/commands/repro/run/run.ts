import { writeFile } from 'node:fs/promises';
import { join, resolve } from 'node:path';
import { monotonicNow } from '../../../core/clock.ts';
import { usageError } from '../../../core/errors.ts';
import { EXIT, type ExitCode } from '../../../core/exit-code.ts';
import type { Verdict } from '../../../core/verdict.ts';
import { readParameters } from '../../../../repro/parameters/read.ts';
import { runSeries, type Arm } from '../../../../repro/run/series.ts';
import { verdictOf } from '../../../../repro/run/tally.ts';
import { verdictText } from '../../../report/verdict-text.ts';
import type { Command, CommandContext } from '../../command-line/command.ts';
import { parseCount } from '../../command-line/parse.ts';
import { StopSignals } from '../../watching/stop-signals.ts';
import { LARGEST_SEED } from '../new/options.ts';
import { reproRunUsage } from './usage.ts';

/** `trace repro run`: trials of a reproduction, and what they say. */
export const reproRunCommand: Command = { ...reproRunUsage, run };

const RUNS = 20;
const MOST_RUNS = 100_000;

async function run({ values, positionals, environment }: CommandContext): Promise<ExitCode> {
  const [named, ...others] = positionals;
  if (named === undefined || others.length > 0)
    throw usageError('repro run takes one folder', 'trace repro run <dir>');
  const folder = resolve(environment.cwd, named);
  const parameters = await readParameters(folder);
  const text = (name: string): string | undefined => {
    const value = values[name];
    return typeof value === 'string' ? value : undefined;
  };
  const runs = parseCount(text('runs') ?? String(RUNS), {
    flag: '--runs',
    least: 1,
    most: MOST_RUNS,
  });
  const seed = parseCount(text('seed') ?? String(parameters.seed), {
    flag: '--seed',
    least: 0,
    most: LARGEST_SEED,
  });
  const [python, node] = [text('python'), text('node')];
  const trials = {
    ...(python === undefined ? {} : { python }),
    ...(node === undefined ? {} : { node }),
  };
  const subject: Arm = { label: 'as given', parameters, environment: trials };
  const control: Arm | null =
    values['no-control'] === true || parameters.concurrency === 1
      ? null
      : { ...subject, label: 'concurrency 1', parameters: { ...parameters, concurrency: 1 } };
  const signals = new StopSignals(environment);
  const abort = new AbortController();
  signals.listen(() => abort.abort());
  const began = monotonicNow();
  try {
    const done = await runSeries({
      folder,
      subject,
      control,
      runs,
      seed,
      abort: abort.signal,
      onTrial: () => false,
    });
    const verdict = verdictOf({
      ...done,
      stoppedEarly: abort.signal.aborted,
      duration: monotonicNow() - began,
    });
    await writeFile(join(folder, 'verdict.json'), `${JSON.stringify(verdict, null, 2)}\n`);
    environment.stdout.write(verdictText(verdict));
    return signals.received === null
      ? exitCodeOf(verdict)
      : signals.received === 'SIGINT'
        ? EXIT.interrupted
        : EXIT.terminated;
  } finally {
    signals.close();
  }
}

function exitCodeOf({ outcome }: Verdict): ExitCode {
  if (outcome === 'invalid') return EXIT.invalid;
  return outcome === 'reproduced' ? EXIT.finding : EXIT.ok;
}
