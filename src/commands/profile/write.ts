import { closeSync, writeFileSync } from 'node:fs';
import { resolve } from 'node:path';
import { errorCode, TraceError } from '../../core/errors.ts';
import { EXIT } from '../../core/exit-code.ts';
import { printable } from '../../core/text.ts';
import { openOutputSync } from '../../platform/output-file.ts';
import { renderCollapsed } from '../../report/profile/collapsed.ts';
import { renderProfileJson } from '../../report/profile/json.ts';
import type { ProfileReport } from '../../report/profile/report.ts';
import { renderProfile } from '../../report/profile/terminal.ts';
import { decideSurface, type Surface } from '../../report/style.ts';
import type { Environment } from '../command-line/command.ts';
import type { ProfileFormat, ProfileOptions } from './options.ts';

/** Where a profile goes: a file and the table, or one of them to stdout. */
export async function writeProfile(
  report: ProfileReport,
  options: ProfileOptions,
  environment: Environment,
): Promise<void> {
  const { stdout, stderr, env, cwd } = environment;
  const { isTTY, columns } = stdout;
  const surface = decideSurface({ env, isTTY, columns, noColor: options.noColor });
  if (options.output === null) {
    writeOut(await render(report, options.format, surface), environment);
    return;
  }
  const plain: Surface = { ...surface, color: false };
  const content = await render(report, options.format, plain);
  try {
    const file = openOutputSync(resolve(cwd, options.output), 0o600);
    try {
      writeFileSync(file, content);
    } finally {
      closeSync(file);
    }
  } catch (error) {
    // The profile is not lost by it.
    stdout.write(renderProfile(report, surface));
    throw new TraceError(
      'ERR_OUTPUT',
      `${printable(options.output)} cannot be written (${errorCode(error)})`,
      { exitCode: EXIT.usage, remedy: 'Name a file in a folder that is there.', cause: error },
    );
  }
  stdout.write(renderProfile(report, surface));
  if (!options.quiet) stderr.write(`${options.format} written to ${printable(options.output)}\n`);
}

async function render(
  report: ProfileReport,
  format: ProfileFormat,
  surface: Surface,
): Promise<string | Buffer> {
  switch (format) {
    case 'text':
      return renderProfile(report, surface);
    case 'json':
      return renderProfileJson(report);
    case 'collapsed':
      return renderCollapsed(report.profile);
    case 'speedscope':
      return (await import('../../report/profile/speedscope.ts')).renderSpeedscope(report);
    case 'chrome':
      return (await import('../../report/profile/chrome.ts')).renderChrome(report);
    case 'pprof':
      return (await import('../../report/profile/pprof.ts')).renderPprof(report);
    default:
      return format satisfies never;
  }
}

/** Bytes go past the text output, which knows only text. */
function writeOut(content: string | Buffer, { stdout }: Environment): void {
  if (typeof content === 'string') stdout.write(content);
  else process.stdout.write(content);
}
