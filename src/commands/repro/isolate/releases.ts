import { writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { type ReleaseRange, withPin } from '../../../../repro/environments/pins.ts';
import { releasesBetween } from '../../../../repro/environments/releases.ts';
import { type Border, findBorder, type Judged } from '../../../../repro/isolate/border.ts';
import { judgeState, type StateJudgement } from '../../../../repro/isolate/judge-state.ts';
import { TraceError, usageError } from '../../../core/errors.ts';
import { EXIT, type ExitCode } from '../../../core/exit-code.ts';
import { parseTrialChoice, trialEnvironment } from '../trial-environment.ts';
import type { IsolateSession } from './session.ts';
import { inOneLine } from '../../../core/text.ts';

/** A release that was tried. */
interface ReleaseStep extends StateJudgement {
  readonly version: string;
}

/** Finds the two releases of a package between which the fault comes or goes. */
export async function isolateReleases(
  session: IsolateSession,
  range: ReleaseRange,
): Promise<ExitCode> {
  const { folder, options, context, abort } = session;
  const { stdout, stderr } = context.environment;
  const versions = await versionsOf(session, range);
  if (options.plan) {
    const most = Math.ceil(Math.log2(versions.length)) + 2;
    stdout.write(
      `${versions.length} releases of ${range.name}; about ${most} of them tried by halves, each installed once; up to ${options.runs} trials of a release, fewer where one reproduces\n`,
    );
    return EXIT.ok;
  }
  const steps: ReleaseStep[] = [];
  const border = await findBorder(versions.length, async (place): Promise<Judged | null> => {
    const version = versions[place] ?? '';
    const step = { version, ...(await judgeRelease(session, { ...range, version })) };
    if (abort.aborted) return null;
    steps.push(step);
    if (context.values['quiet'] !== true) stderr.write(`${lineOf(range.name, step)}\n`);
    return step.judged;
  });
  const document = {
    schema_version: 1,
    command: 'repro isolate',
    releases: range,
    steps,
    border:
      border === null
        ? null
        : {
            before: versions[border.before],
            after: versions[border.after],
            change: border.change,
          },
  };
  const text = `${JSON.stringify(document, null, 2)}\n`;
  await writeFile(join(folder, 'isolation.json'), text);
  const said = border === null ? untold(range, steps) : told(range.name, versions, border);
  const passed = `A release counts as without it after ${options.runs} trials: one that has it rarely may have been passed over.\n`;
  context.environment.onResult?.({ summary: inOneLine(said), link: folder });
  stdout.write(context.values['json'] === true ? text : said + (border === null ? '' : passed));
  return border === null ? EXIT.invalid : EXIT.ok;
}

async function environmentOf(
  { context, abort, parameters }: IsolateSession,
  pin: { readonly name: string; readonly version: string },
) {
  const choice = parseTrialChoice(context.values);
  const { name, version } = pin;
  return trialEnvironment(
    { ...choice, packages: withPin(choice.packages, { name, version }) },
    { language: parameters.language, environment: context.environment, abort },
  );
}

async function versionsOf(
  session: IsolateSession,
  range: ReleaseRange,
): Promise<readonly string[]> {
  const { language } = session.parameters;
  if (language === 'shell') throw usageError('a shell script imports no packages');
  const { env } = session.context.environment;
  // An environment has pip; the machine's own interpreter may not.
  const made = await environmentOf(session, { name: range.name, version: range.from });
  return releasesBetween({ language, range, python: made.python ?? 'python3', env });
}

/** One that cannot be installed is skipped. */
async function judgeRelease(
  session: IsolateSession,
  pin: { readonly name: string; readonly version: string },
): Promise<StateJudgement> {
  const { folder, parameters, options, abort } = session;
  try {
    const environment = await environmentOf(session, pin);
    const { runs, seed } = options;
    return await judgeState({ folder, parameters, environment, runs, seed, abort });
  } catch (error) {
    if (!(error instanceof TraceError)) throw error;
    return { judged: 'skip', reproduced: 0, trials: 0 };
  }
}

function lineOf(name: string, { version, judged, reproduced, trials }: ReleaseStep): string {
  return `${name} ${version}  ${judged}  ${reproduced} / ${trials}`;
}

function told(name: string, versions: readonly string[], border: Border): string {
  const { before, after, change } = border;
  const [last, first] = [versions[before] ?? '', versions[after] ?? ''];
  const between = versions.slice(before + 1, after);
  const skipped = between.length === 0 ? '' : `Not tested: ${between.join(', ')}.\n`;
  return change === 'comes'
    ? `The first release with it: ${name} ${first}; ${last} is without it.\n${skipped}`
    : `The first release without it: ${name} ${first}; ${last} has it.\n${skipped}`;
}

function untold({ name, from, to }: ReleaseRange, steps: readonly ReleaseStep[]): string {
  const skipped = steps.find(({ judged }) => judged === 'skip');
  if (steps.length < 2 && skipped === undefined)
    return 'It was stopped before both ends were tried.\n';
  if (skipped !== undefined)
    return `${name} ${skipped.version} could not be tested: nothing follows.\n`;
  const both = steps[0]?.judged === 'bad' ? 'both have it' : 'neither has it';
  return `${name} ${from} and ${to} do not differ: ${both}.\n`;
}
