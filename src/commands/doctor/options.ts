import {
  COMMON_OPTIONS,
  LOGGED_OPTIONS,
  loggedHelp,
  type OptionTable,
  type OptionValues,
  type Usage,
} from '../command-line/command.ts';
import { optionalPid } from '../command-line/optional-pid.ts';

const OPTIONS = {
  pid: { type: 'string', short: 'p' },
  format: { type: 'string', short: 'f' },
  json: { type: 'boolean' },
  ...LOGGED_OPTIONS,
  ...COMMON_OPTIONS,
} as const satisfies OptionTable;

const help = `trace doctor - say what works on this machine, and why not the rest

Usage:
  trace doctor [options]
  trace doctor <pid> [options]

Looks at everything that trace depends on: the rights it runs with, the kernel,
the interpreters on PATH, nvidia-smi, where OpenTelemetry data would go, the
container and its limits. Each line says ok, limited or missing, and what is not
ok comes with the command that changes it.

With a pid it also says what trace attach could see of that process, and why not
the rest. Like attach it only reads, and changes nothing.

It starts nvidia-smi and, where a file does not tell its version, interpreters
to ask them for it (two seconds each at most, side by side), and tries one
connection to the OpenTelemetry endpoint, over which it sends nothing.

Options:
  -p, --pid <pid>        the same as <pid>
  -f, --format <format>  text (default) or json
      --json             the same as --format json: one document on stdout
${loggedHelp(25)}  -q, --quiet            nothing on stderr but errors
  -v, --verbose          errors with their code and cause
      --no-color         no colour; also NO_COLOR, and when not a terminal

Exit codes:
  0    looked, whatever was found
  2    wrong usage
  3    no such process
  5    the process is one that cannot be attached to at all (a kernel thread)
  70   a bug in trace

Examples:
  trace doctor
  trace doctor 4312
  trace doctor --json | jq '.checks[] | select(.status != "ok")'

More: docs/doctor.md says what each line means.
`;

/** `trace doctor` as its help shows it. */
export const doctorUsage: Usage = {
  name: 'doctor',
  summary: 'Say what works on this machine, and why not',
  help,
  options: OPTIONS,
  completes: { argument: 'process', values: { pid: 'process', format: ['text', 'json'] } },
};

/** The process that was asked about, null for the machine alone. */
export function chooseDoctorTarget(
  values: OptionValues,
  positionals: readonly string[],
): number | null {
  return optionalPid(values, positionals);
}
