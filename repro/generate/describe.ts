import { type OracleKind, type ReproParameters } from '../parameters/parameters.ts';
import { databaseVariable, sqlFilesOf } from './transactions.ts';

/** What a reproduction does, as people read it: in the script's docstring and the README. */
export interface Description {
  readonly what: string;
  readonly run: string;
  readonly expected: string;
  readonly actual: string;
}

const BODIES = {
  kept: 'Bodies are those that were recorded, with credentials masked',
  'some-kept':
    'Bodies are those that were recorded where they were kept; the others are made up, as long as they were',
  'made-up': 'Prompts are made up, as long as those that were recorded: what was said was not kept',
} as const;

/** The words for a reproduction. */
export function describe(parameters: ReproParameters): Description {
  const { origin, attempts, concurrency, hypothesis, oracle } = parameters;
  const sql = sqlFilesOf(parameters);
  const subject =
    sql !== null
      ? `Runs the transactions of ${sql.join(' and ')} ${attempts} times, ${concurrency} at once, in the PostgreSQL that ${databaseVariable(oracle)} names`
      : origin === 'call'
        ? `Calls ${parameters.call?.target ?? ''} ${attempts} times, ${concurrency} at once`
        : `Sends ${attempts} requests to ${parameters.traffic?.base_url ?? ''}, ${concurrency} at once at most.\n${BODIES[parameters.traffic?.bodies ?? 'made-up']}`;
  const { expected, actual } = MEANING[oracle.kind];
  return {
    what: hypothesis === null ? `${subject}.` : `${hypothesis.claim}\n\n${subject}.`,
    run: runCommand(parameters),
    expected: `${expected} The last line is "Errors: 0 / N", the exit code 0.`,
    actual: `${actual} The last line is "Errors: k / N", the exit code 1.`,
  };
}

/** How a person starts the script in its folder. */
export function runCommand({ language, script }: ReproParameters): string {
  return `${{ python: 'python3', node: 'node', shell: 'sh' }[language]} ${script}`;
}

const MEANING: Readonly<
  Record<OracleKind, { readonly expected: string; readonly actual: string }>
> = {
  exception: {
    expected: 'No attempt fails.',
    actual: 'Some attempts fail with an error.',
  },
  'cross-talk': {
    expected: 'No answer holds the mark of another attempt.',
    actual: 'Some answers belong to another attempt: they hold its mark.',
  },
  'lost-update': {
    expected: 'All updates are there in the end.',
    actual: 'Some updates are lost: the value in the end is too small.',
  },
  'same-alone': {
    expected: 'An attempt gives the same alone and in company.',
    actual: 'Some attempts give something else in company than alone.',
  },
  growth: {
    expected: 'After a warm-up, further attempts leave nothing behind.',
    actual: 'Each attempt leaves something behind.',
  },
  'no-progress': {
    expected: 'All attempts end in time.',
    actual: 'Some attempts never end.',
  },
  'head-of-line': {
    expected: 'Others are served while an attempt runs.',
    actual: 'Others wait while an attempt runs.',
  },
  transactions: {
    expected: 'No transaction is ended by the database on account of another.',
    actual:
      'Some transactions are ended by the database: they waited for each other (40P01), or could not have run one after the other (40001).',
  },
  script: {
    expected: 'The check finds nothing wrong.',
    actual: 'The check finds wrong answers.',
  },
};
