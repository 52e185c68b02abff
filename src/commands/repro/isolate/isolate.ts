import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join, resolve } from 'node:path';
import { usageError } from '../../../core/errors.ts';
import { EXIT, type ExitCode, exitCodeOfStop } from '../../../core/exit-code.ts';
import { maskText } from '../../../core/secrets/mask.ts';
import { ownProgram, reproFile } from '../../../platform/standalone.ts';
import { compare, type Comparison, conclusions } from '../../../../repro/isolate/conclude.ts';
import { fewestFlags, matterTogether, mostFlagTrials } from '../../../../repro/isolate/flags.ts';
import { type AnsweringStub, openAnsweringStub } from '../../../../repro/isolate/answering-stub.ts';
import { FAULTS, type FaultyLink, openFaultyLink } from '../../../../repro/isolate/faulty-link.ts';
import {
  type Observer,
  settingsOf,
  STUB,
  type Upstream,
} from '../../../../repro/isolate/settings.ts';
import type { Language } from '../../../../repro/parameters/parameters.ts';
import { readParameters } from '../../../../repro/parameters/read.ts';
import { type ArmTrials, runRounds } from '../../../../repro/run/rounds.ts';
import { runTrial, type TrialEnvironment } from '../../../../repro/trials/run-trial.ts';
import type { Setting } from '../../../../repro/isolate/setting.ts';
import { renderIsolation, renderIsolationPlan } from '../../../report/isolation.ts';
import { decideSurface, isRewritable, type Surface } from '../../../report/style.ts';
import { chooseFormat } from '../../attach/options.ts';
import type { Command, CommandContext, Environment } from '../../command-line/command.ts';
import { StopSignals } from '../../watching/stop-signals.ts';
import { parseTrialChoice, trialEnvironment } from '../trial-environment.ts';
import { isolateCommits } from './commits.ts';
import { type IsolateOptions, parseIsolateOptions } from './options.ts';
import { isolateReleases } from './releases.ts';
import type { IsolateSession } from './session.ts';
import { reproIsolateUsage } from './usage.ts';

/** `trace repro isolate`: one thing changed at a time. */
export const reproIsolateCommand: Command = { ...reproIsolateUsage, run };

const SCHEMA_VERSION = 1;

async function run(context: CommandContext): Promise<ExitCode> {
  const { values, positionals, environment } = context;
  const [named, ...others] = positionals;
  if (named === undefined || others.length > 0)
    throw usageError('repro isolate takes one folder', 'trace repro isolate <dir>');
  const folder = resolve(environment.cwd, named);
  const parameters = await readParameters(folder);
  const options = parseIsolateOptions(values, parameters, environment.cwd);
  const format = chooseFormat(values);
  const { env, stdout } = environment;
  const { isTTY, columns } = stdout;
  const surface = decideSurface({ env, isTTY, columns, noColor: values['no-color'] === true });
  const choice = parseTrialChoice(values);
  const signals = new StopSignals(environment);
  const abort = new AbortController();
  signals.listen(() => abort.abort());
  const scratch = await mkdtemp(join(tmpdir(), 'trace-isolate-'));
  const links: FaultyLink[] = [];
  const stubs: AnsweringStub[] = [];
  try {
    const { language } = parameters;
    const trials = await trialEnvironment(choice, { language, environment, abort: abort.signal });
    const session = { folder, options, abort: abort.signal, context, parameters, trials };
    if (options.releases !== null)
      return withSignal(await isolateReleases(session, options.releases), signals);
    if (options.commits !== null) return withSignal(await isolateCommits(session), signals);
    const patched = { python: join(scratch, 'patched.py'), node: join(scratch, 'patched.mjs') };
    await writeFile(patched.python, reproFile('templates/python/patched.py'));
    await writeFile(patched.node, reproFile('templates/node/patched.mjs'));
    const settings = settingsOf(
      {
        ...options,
        observers: options.observe ? observers(language) : [],
        upstreams: [
          ...(await openLinks(options, links)),
          ...(await openStubs(options, { environment, trials, opened: stubs })),
        ],
      },
      { parameters, environment: trials, patched },
    );
    const tell = { surface, format };
    const code = options.plan
      ? await plan(settings, session, tell)
      : await compareRates(settings, session, tell);
    const unknown = stubs.reduce((sum, stub) => sum + stub.unknown, 0);
    if (unknown > 0)
      environment.stderr.write(
        `trace: the stub was asked ${unknown} times for what the recording does not hold, and answered 501\n`,
      );
    return withSignal(code, signals);
  } finally {
    signals.close();
    await Promise.all([...links, ...stubs].map((one) => one.close()));
    await rm(scratch, { recursive: true, force: true });
  }
}

/** Watched as usual, and nothing kept: what is compared is the program under it. */
const OBSERVE = ['run', '-q', '--no-recording', '--report', '/dev/null', '--force'];

/** Without touching the program, and, of Node, with V8's profiler in it. */
function observers(language: Language): readonly Observer[] {
  const passive = { how: 'by trace run', command: [...ownProgram(), ...OBSERVE, '--'] };
  const deep = { how: 'with --inspect', command: [...ownProgram(), ...OBSERVE, '--inspect', '--'] };
  return language === 'node' ? [passive, deep] : [passive];
}

function withSignal(code: ExitCode, signals: StopSignals): ExitCode {
  if (signals.received === null) return code;
  return exitCodeOfStop(signals.received);
}

async function openLinks(
  { upstreams, seed }: IsolateOptions,
  opened: FaultyLink[],
): Promise<readonly Upstream[]> {
  const all: Upstream[] = [];
  for (const { variable, url, host, port } of upstreams) {
    const links = [];
    for (const fault of FAULTS) {
      const link = await openFaultyLink({ host, port }, fault, seed);
      opened.push(link);
      const address = new URL(url);
      address.hostname = '127.0.0.1';
      address.port = String(link.port);
      // A URL of the program's own writing: without the slash that parsing adds.
      links.push({
        fault,
        address: url.endsWith('/') ? address.href : address.href.replace(/\/$/, ''),
      });
    }
    all.push({ name: variable ?? maskText(url), variable, links });
  }
  return all;
}

async function openStubs(
  { stubs }: IsolateOptions,
  {
    environment,
    trials,
    opened,
  }: {
    readonly environment: Environment;
    readonly trials: TrialEnvironment;
    readonly opened: AnsweringStub[];
  },
): Promise<readonly Upstream[]> {
  if (stubs.length === 0) return [];
  const [{ openRecording }, { recordedAnswers }] = await Promise.all([
    import('../../../recording/reader.ts'),
    import('./recorded-answers.ts'),
  ]);
  const all: Upstream[] = [];
  for (const { variable, recording } of stubs) {
    const view = await openRecording(resolve(environment.cwd, recording));
    const stub = await openAnsweringStub(recordedAnswers(view, recording));
    opened.push(stub);
    const given = trials.env?.[variable] ?? environment.env[variable] ?? '';
    // The program's own address may end in a path.
    const path = URL.canParse(given) ? new URL(given).pathname.replace(/\/$/, '') : '';
    const address = `http://127.0.0.1:${stub.port}${path}`;
    all.push({ name: variable, variable, links: [{ fault: STUB, address }] });
  }
  return all;
}

interface Tell {
  readonly surface: Surface;
  readonly format: 'text' | 'json';
}

async function plan(
  settings: readonly Setting[],
  { folder, options, abort, context, trials }: IsolateSession,
  { surface }: Tell,
): Promise<ExitCode> {
  const one = await runTrial(folder, { seed: options.seed, environment: trials, abort });
  const { stdout } = context.environment;
  const { runs, flags } = options;
  const more = mostFlagTrials(flags, runs) + (flags.length < 2 ? 0 : runs);
  stdout.write(renderIsolationPlan(settings, { runs, more, trial: one.seconds, surface }));
  return EXIT.ok;
}

async function compareRates(
  settings: readonly Setting[],
  session: IsolateSession,
  { surface, format }: Tell,
): Promise<ExitCode> {
  const { folder, options, abort, context } = session;
  const { stdout, stderr, env, onResult } = context.environment;
  const showsProgress = context.values['quiet'] !== true && isRewritable(stderr, env);
  let count = 0;
  const all = settings.length * options.runs;
  const done = await runRounds({
    folder,
    arms: settings,
    runs: options.runs,
    seed: options.seed,
    abort,
    onTrial: () => {
      count += 1;
      if (showsProgress) stderr.write(`\r${count} / ${all} trials `);
      return false;
    },
  });
  if (showsProgress && count > 0) stderr.write('\r\u001b[K');
  const rows = await withFewestFlags(done, session);
  const said = conclusions(rows);
  const document = {
    schema_version: SCHEMA_VERSION,
    command: 'repro isolate',
    runs: options.runs,
    seed: options.seed,
    interrupted: abort.aborted,
    rows,
    conclusions: said,
  };
  const text = `${JSON.stringify(document, null, 2)}\n`;
  await writeFile(join(folder, 'isolation.json'), text);
  onResult?.({ summary: said.join(' '), link: folder });
  stdout.write(format === 'json' ? text : renderIsolation(rows, { said, surface }));
  const [base] = rows;
  return base === undefined || base.tally.reproduced === 0 ? EXIT.invalid : EXIT.ok;
}

/** The table, with a row more where flags matter only together: the fewest of them. */
async function withFewestFlags(
  done: readonly ArmTrials<Setting>[],
  { folder, options, abort }: IsolateSession,
): Promise<readonly Comparison[]> {
  const rows = compare(done, abort.aborted);
  const [given] = done;
  const [base] = rows;
  if (given === undefined || base === undefined || !matterTogether(rows)) return rows;
  const { flags, runs } = options;
  let seed = options.seed + runs;
  const fewest = await fewestFlags({
    given: given.arm,
    flags,
    base: base.tally,
    runs,
    abort,
    trial: async ({ parameters, environment }) => {
      const chosen = { seed: seed++, parameters, environment, abort };
      const { outcome } = await runTrial(folder, chosen);
      return outcome === 'invalid' ? null : outcome === 'reproduced';
    },
  });
  if (fewest === null) return rows;
  // Seeds that the search has not seen.
  const again = { folder, arms: [fewest], runs, seed, abort, onTrial: () => false };
  return compare([...done, ...(await runRounds(again))], abort.aborted);
}
