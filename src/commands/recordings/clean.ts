import { EXIT, type ExitCode } from '../../core/exit-code.ts';
import type { Seconds } from '../../core/types.ts';
import { listRecordings, type RecordingSummary } from '../../recording/inventory.ts';
import { callerOwner } from '../../recording/directory.ts';
import { deleteRecording } from '../../recording/remove.ts';
import { type CleanItem, renderClean, renderCleanJson } from '../../report/inventory.ts';
import { decideSurface } from '../../report/style.ts';
import { chooseFormat } from '../attach/options.ts';
import { chooseCleanRule, type CleanRule, cleanUsage } from './clean-options.ts';
import type { Command, CommandContext, Environment } from '../command-line/command.ts';
import { recordingPlaces } from './recording-places.ts';
import { toolVersion } from '../version.ts';

/** `trace clean`: removes recordings that are old, and nothing else. */
export const cleanCommand: Command = { ...cleanUsage, run };

async function run({ values, positionals, environment }: CommandContext): Promise<ExitCode> {
  const format = chooseFormat(values);
  const rule = chooseCleanRule(values);
  const dryRun = values['dry-run'] === true;
  const places = await recordingPlaces(positionals, environment);
  const all = await listRecordings(places);
  const items: CleanItem[] = [];
  for (const recording of toGo(all, rule, Date.now() / 1e3))
    items.push(dryRun ? wouldRemove(recording) : await settle(recording, environment));
  const kept = all.length - items.filter(({ outcome }) => outcome !== 'left').length;
  const { stdout, env, cwd } = environment;
  const { isTTY, columns } = stdout;
  const surface = decideSurface({ env, isTTY, columns, noColor: values['no-color'] === true });
  stdout.write(
    format === 'json'
      ? renderCleanJson(items, { toolVersion: toolVersion(), dryRun, kept })
      : renderClean(items, { surface, cwd, kept }),
  );
  return items.some(({ outcome }) => outcome === 'left') ? EXIT.finding : EXIT.ok;
}

/** Oldest last, as they were listed. One that is being written is never among them, whatever the rule. */
function toGo(
  all: readonly RecordingSummary[],
  { olderThan, keep }: CleanRule,
  now: Seconds,
): readonly RecordingSummary[] {
  return all
    .slice(keep)
    .filter(({ state }) => state !== 'running')
    .filter(({ endedAt }) => olderThan === null || now - endedAt > olderThan);
}

function wouldRemove(recording: RecordingSummary): CleanItem {
  return { recording, outcome: 'would-remove', reason: null };
}

async function settle(recording: RecordingSummary, { env }: Environment): Promise<CleanItem> {
  try {
    await deleteRecording(recording.path, callerOwner(env));
    return { recording, outcome: 'removed', reason: null };
  } catch (error) {
    const reason = error instanceof Error ? error.message : String(error);
    return { recording, outcome: 'left', reason };
  }
}
