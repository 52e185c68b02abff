import { parseAttachOptions } from '../src/commands/attach/options.ts';
import { chooseCleanupTarget } from '../src/commands/cleanup/options.ts';
import { parseCommandLine } from '../src/commands/command-line/command-line.ts';
import type { OptionValues } from '../src/commands/command-line/command.ts';
import { chooseDoctorTarget } from '../src/commands/doctor/options.ts';
import { parseHeapOptions } from '../src/commands/heap/options.ts';
import { parseLoadOptions } from '../src/commands/load/options.ts';
import { parseProfileOptions } from '../src/commands/profile/options.ts';
import { parseProxyOptions } from '../src/commands/proxy/options.ts';
import { chooseCleanRule } from '../src/commands/recordings/clean-options.ts';
import { VERBS, verbBelow } from '../src/commands/registry.ts';
import { parseExploreOptions } from '../src/commands/repro/explore/options.ts';
import { parseIsolateOptions } from '../src/commands/repro/isolate/options.ts';
import { parseNewOptions } from '../src/commands/repro/new/options.ts';
import { givenSchedule } from '../src/commands/repro/replay/replay.ts';
import { parseRunOptions as parseReproRunOptions } from '../src/commands/repro/run/options.ts';
import { parseTrialChoice } from '../src/commands/repro/trial-environment.ts';
import { parseRunOptions } from '../src/commands/run/options.ts';
import { chooseTasksOptions } from '../src/commands/tasks/options.ts';
import type { ReproParameters } from '../repro/parameters/parameters.ts';
import { writeSchedule } from '../repro/schedules/schedule.ts';

/** A command line as its verb reads it, up to where the verb would begin to do something. */
interface Asked {
  readonly values: OptionValues;
  readonly positionals: readonly string[];
  readonly command: readonly string[];
}

const SCHEDULE = writeSchedule('python', {
  clock: 'virtual',
  threads: false,
  include: [],
  strategy: 'explicit',
  delays: [['0', 1, 1]],
});

/** What stands for a value that the reader fills in. */
const PLACEHOLDERS: readonly (readonly [RegExp, string])[] = [
  [/^(?:pid|process)s?$/i, '4312'],
  [/schedule/i, SCHEDULE],
  [/url|endpoint|server/i, 'http://127.0.0.1:8000'],
  [/count|number|^n$|seconds|limit/i, '10'],
  [/time|^age$|duration/i, '10s'],
  [/recording/i, 'runs/one'],
  // What the test of a hypothesis calls it: see Explanation.
  [/^self$/, 'runs/one#H1'],
  [/^old$/, '1.0'],
  [/^new$/, '1.1'],
  [/command/i, 'true'],
  // Flags that a program puts in by a variable.
  [/^again$|^flags?$|^options?$/i, ''],
  [/^(?:id|h\d*)$|hypothesis/i, 'H1'],
];

/** A plausible value for a placeholder, by its name. */
export function valueFor(name: string): string {
  return PLACEHOLDERS.find(([pattern]) => pattern.test(name))?.[1] ?? 'one';
}

/** The words of a shell's command line, quotes taken off and placeholders filled in. */
export function shellWords(text: string): string[] {
  const parts = text.match(/(?:[^\s'"]|'[^']*'|"[^"]*")+/g) ?? [];
  return parts.map((part) =>
    part
      .replaceAll(
        /'([^']*)'|"([^"]*)"/g,
        (_, single?: string, double?: string) => single ?? double ?? '',
      )
      .replaceAll(/<([\w -]+)>|\$([A-Z]+)/g, (_, name?: string, variable?: string) =>
        valueFor(name ?? variable ?? ''),
      )
      .replace(/(?<=\w)\.\.\.?$/, '')
      .replace(/^PID$/, '4312')
      .replace(/^…$/, 'one'),
  );
}

/** A call of trace, read as trace reads it and not run. Throws what trace would say. */
export async function parseTraceCommand(text: string): Promise<void> {
  const read = await readTable(text);
  if (read === null) return;
  const { words, asked } = read;
  if (words.length === 1 && VERBS.some(({ name, verbs }) => name === words[0] && verbs))
    throw new Error(`no verb below ${words[0]}`);
  READERS[words.join(' ')]?.(asked);
}

/** As far as the verb's table of options goes: that verb and flags exist and have the values that they need. */
export async function readTable(
  text: string,
): Promise<{ readonly words: readonly string[]; readonly asked: Asked } | null> {
  const all = shellWords(text);
  const [name = '', ...behind] = all.slice(all.indexOf('trace') + 1);
  if (['--help', '--version', 'help'].includes(name)) return null;
  const named = VERBS.find((one) => one.name === name);
  if (named === undefined) throw new Error(`no verb ${name}`);
  const { verb, args } = verbBelow(named, behind);
  if (args.includes('--help')) return null;
  const words = verb === named ? [name] : [name, verb.name];
  return { words, asked: parseCommandLine(await verb.usage(), args) };
}

function one({ positionals }: Asked): void {
  if (positionals.length !== 1) throw new Error(`takes one argument, got ${positionals.length}`);
}

function atMostOne({ positionals }: Asked): void {
  if (positionals.length > 1) throw new Error(`takes one argument, got ${positionals.length}`);
}

/** The folder that `repro new` made. */
function folder(asked: Asked): void {
  one(asked);
  if (asked.positionals[0]?.includes('#') === true)
    throw new Error('takes a folder that repro new made, not a recording');
}

/** One folder or one command: what `chooseProgram` wants before it looks at the disk. */
function program(asked: Asked): void {
  const { values, positionals, command } = asked;
  if (command.length === 0) return folder(asked);
  if (positionals.length > 0) throw new Error('one folder, or one command behind --');
  if (values['package'] !== undefined || values['env'] !== undefined)
    throw new Error('--package and --env are for a folder');
}

function needs(...names: readonly string[]): (asked: Asked) => void {
  return ({ values }) => {
    const missing = names.filter((name) => values[name] === undefined);
    if (missing.length > 0) throw new Error(`--${missing.join(', --')} missing`);
  };
}

const PYTHON = { language: 'python', seed: 1 } as unknown as ReproParameters;

/** What `trace session hypothesis` checks before it opens the session. */
function hypothesis({ values, positionals: [what = '', ...words] }: Asked): void {
  if (!['add', 'confirm', 'eliminate', 'rank'].includes(what))
    throw new Error('one of add, confirm, eliminate, rank');
  if (what === 'add') {
    if (words.length > 0 && values['refutes'] === undefined)
      throw new Error('--refutes is missing');
    return;
  }
  if (words[0] === undefined) throw new Error('which hypothesis?');
  if (what === 'rank' && !/^\d+$/.test(words[1] ?? '')) throw new Error('a rank is a number');
  if (what !== 'rank' && words.length < 2 && values['evidence'] === undefined)
    throw new Error('--evidence is missing');
}

/** The reader of each verb's options, or what the verb checks first. Other verbs take what their table takes. */
const READERS: Readonly<Record<string, (asked: Asked) => void>> = {
  attach: ({ values, positionals }) => void parseAttachOptions(values, positionals),
  run: ({ values, positionals, command }) => void parseRunOptions(values, { positionals, command }),
  load: ({ values, positionals }) => {
    if (positionals[0] !== 'merge') parseLoadOptions(values, positionals, { env: {} });
    else if (positionals.length < 2) throw new Error('merge takes documents');
  },
  proxy: ({ values, positionals }) => void parseProxyOptions(values, positionals),
  profile: ({ values, positionals }) => void parseProfileOptions(values, positionals),
  tasks: ({ values, positionals }) => void chooseTasksOptions(values, positionals),
  doctor: ({ values, positionals }) => void chooseDoctorTarget(values, positionals),
  heap: ({ values, positionals }) => void parseHeapOptions(values, positionals),
  cleanup: ({ values, positionals }) => void chooseCleanupTarget(values, positionals),
  clean: ({ values }) => void chooseCleanRule(values),
  show: one,
  hypotheses: one,
  completion: one,
  'repro new': ({ values, positionals }) => void parseNewOptions(values, positionals),
  'repro run': (asked) => {
    folder(asked);
    parseReproRunOptions(asked.values, asked.positionals);
  },
  'repro isolate': (asked) => {
    folder(asked);
    parseIsolateOptions(asked.values, PYTHON, '/');
    parseTrialChoice(asked.values);
  },
  'repro explore': (asked) => {
    program(asked);
    parseExploreOptions(asked.values);
  },
  'repro replay': (asked) => {
    program(asked);
    givenSchedule(asked.values);
  },
  'repro shrink': (asked) => {
    program(asked);
    if (asked.values['schedule'] !== undefined) givenSchedule(asked.values);
  },
  'session hypothesis': hypothesis,
  'session evidence': ({ values, positionals }) => {
    if (positionals[0] !== 'add' || positionals.length > 1)
      throw new Error('evidence can be added');
    const isSaid = values['checked'] !== undefined && values['found'] !== undefined;
    const isAsked = values['checked'] === undefined && values['found'] === undefined;
    if (!isSaid && !isAsked && values['from'] === undefined)
      throw new Error('--checked and --found say what was seen');
  },
  'session focus': ({ values, positionals }) => {
    if (positionals[0] === undefined && values['next'] === undefined)
      throw new Error('focus on what?');
  },
  'session tdd': (asked) => {
    needs('file')(asked);
    if (asked.command.length === 0) throw new Error('which test?');
  },
  'session reproduce': ({ positionals, command }) => {
    if (positionals.length > 0 || command.length === 0)
      throw new Error('the command stands behind --');
  },
  'session reject': needs('because'),
  'session abandon': needs('because'),
  'session reopen': one,
  'session brief': atMostOne,
  'session report': atMostOne,
  'session status': atMostOne,
  'session continue': atMostOne,
};
