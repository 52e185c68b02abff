import { resolve } from 'node:path';
import { combineExitCodes, EXIT, type ExitCode } from '../../core/exit-code.ts';
import type { LoadPlan } from '../../load/plan.ts';
import type { Command, CommandContext, Environment } from '../command-line/command.ts';
import { announcement, announcementDocument, announcementLines } from './announcement.ts';
import { checkDescriptors } from './descriptors.ts';
import { extentOf, type LoadExtent } from './extent.ts';
import { lengthNotes } from './lengths.ts';
import { type LoadOptions, parseLoadOptions } from './options.ts';
import { draftPlan } from './plan.ts';
import { concerns, unconfirmed } from './safety.ts';
import { LoadScreen } from './screen.ts';
import type { LoadRun } from './settings.ts';
import { loadUsage } from './usage.ts';

/** `trace load`: decide what is sent, send it, report what came of it. */
export const loadCommand: Command = { ...loadUsage, run };

async function run({ values, positionals, environment }: CommandContext): Promise<ExitCode> {
  const [first, ...others] = positionals;
  if (first === 'merge') {
    const { mergeLoads } = await import('./merge.ts');
    return mergeLoads(values, others, environment);
  }
  const { loadConfig } = await import('../../config/config.ts');
  const defaults = await loadConfig(environment);
  const options = parseLoadOptions(values, positionals, { env: environment.env, defaults });
  const screen = new LoadScreen(options, environment);
  for (const note of options.notes) screen.note(note);
  const { Judgement } = await import('./result.ts');
  const log = options.settings.requestLog?.path ?? null;
  const judgement = await Judgement.open(options.result, environment, [log]);
  if (options.repro !== null) {
    const { checkFolder } = await import('../../../repro/generate/folder.ts');
    await checkFolder(resolve(environment.cwd, options.repro));
  }
  const draft = await draftPlan(options, environment.cwd);
  const { checkPrompts } = await import('../../load/prompts/prompts.ts');
  checkPrompts(draft.prompts);
  const extent = extentOf(options);
  const found = await concerns(options, extent);
  if (options.dryRun) {
    environment.stdout.write(planText(options, extent, found));
    return EXIT.ok;
  }
  checkDescriptors(options);
  if (found.length > 0) {
    screen.announce(announcementLines(options, extent, options.model));
    if (!options.isConfirmed) throw unconfirmed(found);
  }
  const { completePlan } = await import('./server.ts');
  const plan = await completePlan(draft, options);
  if (found.length === 0) screen.announce([announcement(options, plan.body.model)]);
  // Until the report is out, signals end what is sent, and not trace.
  const letGo = environment.onStop(() => {});
  try {
    const loaded = await send(plan, { options, environment, screen });
    // What was said before is part of a later turn's prompt.
    const notes = options.prompts.turns === 1 ? lengthNotes(extent, loaded.result.total) : [];
    for (const note of notes) screen.note(note);
    const code = await judgement.conclude(loaded, {
      surface: screen.surface(environment.stdout),
      problems: screen.problems,
    });
    if (options.repro === null) return code;
    const { writeRepro } = await import('./repro.ts');
    return combineExitCodes([code, await writeRepro(options.repro, loaded, environment)]);
  } finally {
    letGo();
  }
}

/** Runs the plan. One that it gave up itself was stopped by nobody. */
async function send(
  plan: LoadPlan,
  context: {
    readonly options: LoadOptions;
    readonly environment: Environment;
    readonly screen: LoadScreen;
  },
): Promise<LoadRun> {
  const { options, environment, screen } = context;
  const { runLoad } = await import('./run.ts');
  const { giveUp } = screen;
  const loaded = await runLoad(plan, options.settings, {
    environment: giveUp.within(environment),
    screen,
  });
  return giveUp.done ? { ...loaded, signal: null } : loaded;
}

/** `--dry-run`: the plan is the result. */
function planText(options: LoadOptions, extent: LoadExtent, found: readonly string[]): string {
  if (options.result.format === 'json') return announcementDocument(options, extent, found);
  const lines = announcementLines(options, extent, options.model);
  return `${[...lines, ...found.map((concern) => `needs --yes: ${concern}`)].join('\n')}\n`;
}
