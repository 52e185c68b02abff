import { EXIT, type ExitCode } from '../../core/exit-code.ts';
import { listRecordings } from '../../recording/inventory.ts';
import { renderInventory, renderInventoryJson } from '../../report/inventory.ts';
import { decideSurface } from '../../report/style.ts';
import { chooseFormat } from '../attach/options.ts';
import type { Command, CommandContext } from '../command-line/command.ts';
import { lsUsage } from './ls-options.ts';
import { recordingPlaces } from './recording-places.ts';
import { toolVersion } from '../version.ts';

/** `trace ls`: which recordings there are. */
export const lsCommand: Command = { ...lsUsage, run };

async function run({ values, positionals, environment }: CommandContext): Promise<ExitCode> {
  const format = chooseFormat(values);
  const places = await recordingPlaces(positionals, environment);
  const recordings = await listRecordings(places);
  const { stdout, env, cwd } = environment;
  const { isTTY, columns } = stdout;
  const surface = decideSurface({ env, isTTY, columns, noColor: values['no-color'] === true });
  stdout.write(
    format === 'json'
      ? renderInventoryJson(recordings, { toolVersion: toolVersion(), places })
      : renderInventory(recordings, { surface, cwd, places }),
  );
  return EXIT.ok;
}
