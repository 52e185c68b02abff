import {
  COMMON_OPTIONS,
  type Completes,
  type OptionTable,
  type Usage,
} from '../command-line/command.ts';
import { HELP } from '../command-line/help.ts';
import { VERBS, type Verb } from '../registry.ts';
import { TELLING_NAME } from '../../platform/target-candidates.ts';

/** What all three scripts say, in their own languages. */

export interface FlagModel {
  readonly long: string;
  /** One letter; null without a short form. */
  readonly short: string | null;
  /** Null: a switch. */
  readonly value: Completes | null;
  /** One line of ASCII from the help. */
  readonly description: string;
}

export interface VerbModel {
  readonly name: string;
  readonly summary: string;
  readonly argument: Completes;
  readonly flags: readonly FlagModel[];
}

export interface CompletionModel {
  readonly verbs: readonly VerbModel[];
  /** Flags that may stand without a verb. */
  readonly flags: readonly FlagModel[];
  /** Names the program goes by. */
  readonly programs: readonly string[];
  /** Extended regular expression, lower case: what a process is called that is worth offering. */
  readonly processPattern: string;
}

/** Everything that can be typed, from the registry, the option tables and the help texts. */
export async function completionModel(): Promise<CompletionModel> {
  const usages = await Promise.all(VERBS.map(wholeUsage));
  const verbs = usages.map(({ name, summary, help, options, bare, completes }) => ({
    name,
    summary,
    argument: completes.argument,
    // What may stand without a value is completed without one: the next word is no value of it.
    flags: flagModels(options, help, completes.values).map((flag) =>
      bare?.[flag.long] === undefined ? flag : { ...flag, value: null },
    ),
  }));
  const helpVerb = {
    name: 'help',
    summary: 'Show the help of a verb',
    argument: verbs.map(({ name }) => name),
    flags: [],
  };
  return {
    verbs: [...verbs, helpVerb],
    flags: flagModels({ ...COMMON_OPTIONS, version: { type: 'boolean', short: 'V' } }, HELP, {}),
    programs: ['trace', 'tracewright'],
    processPattern: TELLING_NAME.source,
  };
}

/** The usage of a verb; of one that others stand below, with all that those take. */
export async function wholeUsage(verb: Verb): Promise<Usage> {
  const own = await verb.usage();
  const below = await Promise.all((verb.verbs ?? []).map((one) => one.usage()));
  const all = [own, ...below];
  return {
    ...own,
    help: all.map(({ help }) => help).join('\n'),
    options: Object.assign({}, ...all.map(({ options }) => options)),
    bare: Object.assign({}, ...all.map(({ bare }) => bare)),
    completes: {
      argument: own.completes.argument,
      values: Object.assign({}, ...all.map(({ completes }) => completes.values)),
    },
  };
}

function flagModels(
  options: OptionTable,
  help: string,
  values: Readonly<Record<string, Completes>>,
): readonly FlagModel[] {
  const described = descriptionsIn(help);
  const common = descriptionsIn(HELP);
  return Object.entries(options).map(([long, { type, short }]) => ({
    long,
    short: short ?? null,
    value: type === 'string' ? (values[long] ?? 'text') : null,
    description: described.get(long) ?? common.get(long) ?? '',
  }));
}

const FLAG_LINE = /^ {2,6}(?:\S.*, )?--([a-z-]+)(?: <[^>]+>)? +(\S.*)$/;
/** Further lines of a description stand in its column, which no flag reaches. */
const FURTHER_LINE = /^ {15,}(\S.*)$/;

/** The first clause of what a help text says of each flag. */
export function descriptionsIn(help: string): ReadonlyMap<string, string> {
  const whole = new Map<string, string>();
  let flag: string | null = null;
  for (const line of help.split('\n')) {
    const [, name, text = ''] = FLAG_LINE.exec(line) ?? [];
    const further = FURTHER_LINE.exec(line)?.[1];
    if (name !== undefined) whole.set((flag = name), text);
    else if (further !== undefined && flag !== null)
      whole.set(flag, `${whole.get(flag) ?? ''} ${further}`);
    else flag = null;
  }
  return new Map([...whole].map(([name, text]) => [name, firstClause(text)]));
}

function firstClause(text: string): string {
  const plain = text.replaceAll(/ \(default[^)]*\)/g, '');
  return /^.*?(?=[;:.] |[;:.]$|$)/.exec(plain)?.[0] ?? '';
}
