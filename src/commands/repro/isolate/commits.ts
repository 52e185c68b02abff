import { writeFile } from 'node:fs/promises';
import { join, resolve } from 'node:path';
import { EXIT, type ExitCode } from '../../../core/exit-code.ts';
import { bisectCommits, type CommitStep } from '../../../../repro/isolate/commits.ts';
import type { IsolateSession } from './session.ts';

const SHORT = 12;

/** Finds the commit that brought the fault and says how each one that was tried was judged. */
export async function isolateCommits(session: IsolateSession): Promise<ExitCode> {
  const { folder, options, abort, context, parameters, trials } = session;
  const { stdout, stderr, cwd } = context.environment;
  const { commits, runs, seed } = options;
  if (commits === null) return EXIT.usage;
  const repository = resolve(cwd, options.repository);
  if (options.plan) {
    stdout.write(
      `git bisect from ${commits.good} to ${commits.bad} in a worktree of its own; up to ${runs} trials of a commit, fewer where one reproduces\n`,
    );
    return EXIT.ok;
  }
  const steps: CommitStep[] = [];
  const first = await bisectCommits({
    folder,
    parameters,
    environment: trials,
    repository,
    ...commits,
    runs,
    seed,
    abort,
    onStep: (step) => {
      steps.push(step);
      if (context.values['quiet'] !== true) stderr.write(`${lineOf(step)}\n`);
    },
  });
  const document = {
    schema_version: 1,
    command: 'repro isolate',
    commits,
    steps,
    first_bad: first,
  };
  const text = `${JSON.stringify(document, null, 2)}\n`;
  await writeFile(join(folder, 'isolation.json'), text);
  const said =
    first === null
      ? 'The commit could not be told: too many could not be tested.'
      : `The first commit with it: ${first.commit.slice(0, SHORT)} ${first.subject}`;
  context.environment.onResult?.({ summary: said, link: folder });
  const passed =
    first === null
      ? ''
      : `A commit counts as without it after ${runs} trials: one that has it rarely may have been passed over.\n`;
  stdout.write(context.values['json'] === true ? text : `${said}\n${passed}`);
  return first === null ? EXIT.invalid : EXIT.ok;
}

function lineOf({ commit, judged, reproduced, trials }: CommitStep): string {
  return `${commit.slice(0, SHORT)}  ${judged}  ${reproduced} / ${trials}`;
}
