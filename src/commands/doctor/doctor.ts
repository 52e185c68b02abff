import type { Check } from '../../core/check.ts';
import { EXIT, type ExitCode } from '../../core/exit-code.ts';
import { renderDoctor, renderDoctorJson } from '../../report/doctor.ts';
import { decideSurface } from '../../report/style.ts';
import { chooseFormat } from '../attach/options.ts';
import type { Command, CommandContext } from '../command-line/command.ts';
import { machineChecks } from './machine.ts';
import { chooseDoctorTarget, doctorUsage } from './options.ts';
import { programChecks } from './programs.ts';
import { toolVersion } from '../version.ts';

/** `trace doctor`: what works here, and why not the rest. What is found wrong is the result, not a failure. */
export const doctorCommand: Command = { ...doctorUsage, run };

async function run({ values, positionals, environment }: CommandContext): Promise<ExitCode> {
  const format = chooseFormat(values);
  const pid = chooseDoctorTarget(values, positionals);
  // First: a pid that is not there is said at once, and before anything is started.
  const target = pid === null ? null : { pid, checks: await checksOf(pid) };
  const { loadConfig } = await import('../../config/config.ts');
  const { otlpEndpoint } = await loadConfig(environment);
  const args = pid === null ? ['doctor'] : ['doctor', String(pid)];
  const machine = [
    ...machineChecks(environment.env, args),
    ...(await programChecks(environment.env, otlpEndpoint)),
  ];
  const diagnosis = { toolVersion: toolVersion(), machine, target };
  const wanting = [...machine, ...(target?.checks ?? [])].filter(({ status }) => status !== 'ok');
  environment.onResult?.({
    summary: wanting.map(({ name, status }) => `${name} ${status}`).join(', ') || 'all is ok',
    link: null,
  });
  environment.stdout.write(
    format === 'json'
      ? renderDoctorJson(diagnosis)
      : renderDoctor(
          diagnosis,
          decideSurface({
            env: environment.env,
            isTTY: environment.stdout.isTTY,
            columns: environment.stdout.columns,
            noColor: values['no-color'] === true,
          }),
        ),
  );
  return EXIT.ok;
}

/** Loaded only when a process is asked about: it brings the readers of memory. */
async function checksOf(pid: number): Promise<readonly Check[]> {
  const { targetChecks } = await import('./target.ts');
  return targetChecks(pid);
}
