import { isAlive, undoEntry } from '../../../collectors/node/undo.ts';
import { TraceError } from '../../core/errors.ts';
import { EXIT, type ExitCode } from '../../core/exit-code.ts';
import type { Seconds } from '../../core/types.ts';
import { readStat } from '../../platform/proc.ts';
import { MOUNT_TRACING } from '../../platform/kernel-features.ts';
import { removeTraceInstance, traceInstances } from '../../platform/touch.ts';
import { isTracing, type TracingEntry, tracingEntries } from '../../platform/tracing-journal.ts';
import {
  hasLivingOwner,
  journalEntries,
  journalFolder,
  refusedJournals,
  removeEntry,
  type UndoEntry,
} from '../../platform/undo-journal.ts';
import { type CleanupItem, renderCleanup, renderCleanupJson } from '../../report/cleanup.ts';
import { decideSurface } from '../../report/style.ts';
import { chooseFormat } from '../attach/options.ts';
import { chooseCleanupTarget, cleanupUsage } from './options.ts';
import type { Command, CommandContext } from '../command-line/command.ts';
import { toolVersion } from '../version.ts';

/** `trace cleanup`: undo what a killed trace left, by the journals it wrote before it touched anything. */
export const cleanupCommand: Command = { ...cleanupUsage, run };

/** A target that does not answer by then blocks; its guardian, or another cleanup, will find it later. */
const PATIENCE: Seconds = 5;

async function run({ values, positionals, environment }: CommandContext): Promise<ExitCode> {
  const format = chooseFormat(values);
  const pid = chooseCleanupTarget(values, positionals);
  const dryRun = values['dry-run'] === true;
  const folder = journalFolder(environment.env);
  const isMeant = ({ entry }: { readonly entry: { readonly pid: number } }): boolean =>
    pid === null || entry.pid === pid;
  const journals = journalEntries(folder).filter(isMeant);
  const tracings = tracingEntries(folder).filter(isMeant);
  const refused = refusedJournals(folder);
  if (pid !== null && journals.length + tracings.length === 0 && readStat(pid) === null)
    throw new TraceError('ERR_TARGET_NOT_FOUND', `no process has pid ${pid}, and no journal`, {
      exitCode: EXIT.notFound,
      remedy: 'Without a pid, trace cleanup undoes everything that is left.',
    });
  const inspected = await Promise.all(
    journals.map(({ path, entry }) => settle(entry, dryRun ? null : path)),
  );
  const items = [
    ...inspected,
    ...tracings.map(({ path, entry }) => settleTracing(entry, dryRun ? null : path)),
  ];
  const { stdout, env } = environment;
  stdout.write(
    format === 'json'
      ? renderCleanupJson(items, { toolVersion: toolVersion(), dryRun, refused })
      : renderCleanup(
          items,
          decideSurface({
            env,
            isTTY: stdout.isTTY,
            columns: stdout.columns,
            noColor: values['no-color'] === true,
          }),
          refused,
        ),
  );
  const isLeft = items.some(({ outcome }) => outcome === 'left' || outcome === 'would-undo');
  return isLeft || refused.length > 0 ? EXIT.finding : EXIT.ok;
}

/** Removes the instance of the kernel's tracing that a killed trace left. */
function settleTracing(entry: TracingEntry, path: string | null): CleanupItem {
  const item = { pid: entry.pid, stage: 'tracing', port: null, reason: null, remedy: null };
  if (isTracing(entry))
    return { ...item, outcome: 'in-use', reason: `trace is pid ${entry.owner.pid}` };
  if (path === null) return { ...item, outcome: 'would-undo' };
  if (traceInstances() === null) {
    const reason = "the kernel's tracing is not mounted, so it cannot be seen";
    return { ...item, outcome: 'left', reason, remedy: MOUNT_TRACING };
  }
  try {
    const wasThere = removeTraceInstance(entry);
    removeEntry(path);
    return { ...item, outcome: wasThere ? 'undone' : 'nothing' };
  } catch (error) {
    const reason = error instanceof Error ? error.message : String(error);
    return { ...item, outcome: 'left', reason, remedy: null };
  }
}

/** Undoes one entry and takes its journal away; `path` null: only looks. */
async function settle(entry: UndoEntry, path: string | null): Promise<CleanupItem> {
  const { pid, stage } = entry;
  const item = { pid, stage, port: entry.inspector?.port ?? null, reason: null, remedy: null };
  if (hasLivingOwner(entry))
    return { ...item, outcome: 'in-use', reason: `trace is pid ${entry.owner.pid}` };
  if (path === null) return { ...item, outcome: isAlive(entry) ? 'would-undo' : 'gone' };
  const outcome = await undoEntry(entry, PATIENCE);
  if (outcome.kind === 'failed')
    return { ...item, outcome: 'left', reason: outcome.reason, remedy: outcome.remedy };
  removeEntry(path);
  return { ...item, outcome: outcome.kind };
}
