import { EXIT, type ExitCode } from '../core/exit-code.ts';
import type { Command, CommandContext } from './command.ts';
import { announcement, announcementDocument, announcementLines } from './load-announcement.ts';
import { extentOf } from './load-extent.ts';
import { lengthNotes } from './load-lengths.ts';
import { parseLoadOptions } from './load-options.ts';
import { draftPlan } from './load-plan.ts';
import { concerns, unconfirmed } from './load-safety.ts';
import { LoadScreen } from './load-screen.ts';
import { loadUsage } from './load-usage.ts';

/** `trace load`: decide what is sent, send it, report what came of it. */
export const loadCommand: Command = { ...loadUsage, run };

async function run({ values, positionals, environment }: CommandContext): Promise<ExitCode> {
  const [first, ...others] = positionals;
  if (first === 'merge') {
    const { mergeLoads } = await import('./load-merge.ts');
    return mergeLoads(values, others, environment);
  }
  const { loadConfig } = await import('../config/config.ts');
  const defaults = await loadConfig(environment);
  const options = parseLoadOptions(values, positionals, { env: environment.env, defaults });
  const screen = new LoadScreen(options, environment);
  for (const note of options.notes) screen.note(note);
  const { Judgement } = await import('./load-result.ts');
  const log = options.settings.requestLog?.path ?? null;
  const judgement = await Judgement.open(options.result, environment, [log]);
  const draft = await draftPlan(options, environment.cwd);
  const { checkPrompts } = await import('../load/prompts/prompts.ts');
  checkPrompts(draft.prompts);
  const extent = extentOf(options);
  const lines = announcementLines(options, extent, options.model);
  const found = await concerns(options, extent);
  if (options.dryRun) {
    const isJson = options.result.format === 'json';
    environment.stdout.write(
      isJson
        ? announcementDocument(options, extent, found)
        : `${[...lines, ...found.map(needsYes)].join('\n')}\n`,
    );
    return EXIT.ok;
  }
  if (found.length > 0) {
    screen.announce(lines);
    if (!options.isConfirmed) throw unconfirmed(found);
  }
  const { completePlan } = await import('./load-server.ts');
  const plan = await completePlan(draft, options);
  if (found.length === 0) screen.announce([announcement(options, plan.body.model)]);
  const { runLoad } = await import('./load-run.ts');
  const { giveUp } = screen;
  const loaded = await runLoad(plan, options.settings, {
    environment: giveUp.within(environment),
    screen,
  });
  if (options.prompts.turns === 1) {
    // What was said before is part of a later turn's prompt.
    for (const note of lengthNotes(extent, loaded.result.total)) screen.note(note);
  }
  const run = giveUp.done ? { ...loaded, signal: null } : loaded;
  return judgement.conclude(run, {
    surface: screen.surface(environment.stdout),
    problems: screen.problems,
  });
}

function needsYes(concern: string): string {
  return `needs --yes: ${concern}`;
}
