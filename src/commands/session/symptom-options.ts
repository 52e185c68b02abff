import type { Fields } from '../../core/session.ts';
import type { OptionTable, OptionValues } from '../command-line/command.ts';

/** The flags that say what is wrong. */

export const SYMPTOM_OPTIONS: OptionTable = {
  expected: { type: 'string' },
  actual: { type: 'string' },
  errors: { type: 'string' },
  repro: { type: 'string' },
  started: { type: 'string' },
  frequency: { type: 'string' },
};

/** How a help shows them. */
export const SYMPTOM_HELP = `      --expected <text>   what should happen
      --actual <text>     what happens
      --errors <text>     what is printed
      --repro <text>      how it is triggered
      --started <text>    when it began, whether it ever worked, what changed
      --frequency <text>  always or intermittent
`;

/** The symptoms that were given, by their fields in the file. */
export function symptomsOf(values: OptionValues): Fields {
  const named = Object.keys(SYMPTOM_OPTIONS).flatMap((flag) => {
    const value = values[flag];
    return typeof value === 'string' ? [[flag === 'repro' ? 'reproduction' : flag, value]] : [];
  });
  return Object.fromEntries(named) as Fields;
}
