import { usageError } from '../../../core/errors.ts';
import type { Ratio } from '../../../core/types.ts';
import { type Pin, parsePin } from '../../../../repro/environments/pins.ts';
import { chooseFormat } from '../../attach/options.ts';
import type { OptionValues } from '../../command-line/command.ts';
import { parseChoice, parseCount, parseDecimal } from '../../command-line/parse.ts';
import { LARGEST_SEED } from '../new/options.ts';
import { parseTrialChoice, type TrialChoice } from '../trial-environment.ts';

/** What the subject is compared with. */
export type ControlChoice =
  | { readonly kind: 'none' }
  | { readonly kind: 'alone' }
  | { readonly kind: 'package'; readonly pin: Pin }
  | {
      readonly kind: 'interpreter';
      readonly language: 'python' | 'node';
      readonly program: string;
    };

/** `trace repro run`, decided. */
export interface RunOptions {
  readonly folder: string;
  readonly runs: number;
  /** Null: that of the parameters. */
  readonly seed: number | null;
  readonly control: ControlChoice;
  readonly trials: TrialChoice;
  /** So many reproduced trials end the run early; null never. */
  readonly stopAfter: number | null;
  readonly expect: 'any' | 'none';
  readonly maxRate: Ratio;
  readonly format: 'text' | 'json';
  readonly record: boolean;
  readonly progress: boolean;
}

/** Enough for a rate of a half to be told from one of none; 59 are needed for a bound of 5 %. */
const RUNS = 20;
const RUNS_FOR_NONE = 60;
const MOST_RUNS = 100_000;
/** Contract: the most often that a fault may still happen when none is expected. */
const MAX_RATE: Ratio = 0.05;

/** What the flags say. Throws a usage error. */
export function parseRunOptions(values: OptionValues, positionals: readonly string[]): RunOptions {
  const [folder, ...others] = positionals;
  if (folder === undefined || others.length > 0)
    throw usageError('repro run takes one folder', 'trace repro run <dir>');
  const text = (name: string): string | null => {
    const value = values[name];
    return typeof value === 'string' ? value : null;
  };
  const count = (name: string, least: number, most: number): number | null => {
    const value = text(name);
    return value === null ? null : parseCount(value, { flag: `--${name}`, least, most });
  };
  const expect = parseChoice(text('expect') ?? 'any', ['any', 'none'], '--expect');
  const rate = text('max-rate');
  if (rate !== null && expect !== 'none')
    throw usageError('--max-rate belongs to --expect none', 'Add --expect none.');
  return {
    folder,
    runs: count('runs', 1, MOST_RUNS) ?? (expect === 'none' ? RUNS_FOR_NONE : RUNS),
    seed: count('seed', 0, LARGEST_SEED),
    control: parseControl(values),
    trials: parseTrialChoice(values),
    stopAfter: count('stop-after', 1, MOST_RUNS),
    expect,
    maxRate:
      rate === null ? MAX_RATE : parseDecimal(rate, { flag: '--max-rate', least: 1e-6, most: 1 }),
    format: chooseFormat(values),
    record: values['no-recording'] !== true,
    progress: values['quiet'] !== true,
  };
}

/** What `--control` and `--no-control` say. Throws a usage error. */
export function parseControl(values: OptionValues): ControlChoice {
  const control = typeof values['control'] === 'string' ? values['control'] : null;
  const none = values['no-control'] === true;
  if (none && control !== null)
    throw usageError('--no-control and --control contradict each other');
  if (none) return { kind: 'none' };
  if (control === null) return { kind: 'alone' };
  const [, language, program = ''] = /^(python|node)=([^=].*)$/s.exec(control) ?? [];
  if (language === 'python' || language === 'node')
    return { kind: 'interpreter', language, program };
  return { kind: 'package', pin: parsePin(control, '--control') };
}
