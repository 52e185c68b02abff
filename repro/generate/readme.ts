import type { ReproParameters } from '../parameters/parameters.ts';
import type { Description } from './describe.ts';

/** The machine that a reproduction was written on, as far as it may matter. */
export interface Machine {
  /** `Linux 6.8.0 x64` */
  readonly system: string;
  /** Models of its GPUs; empty without any. */
  readonly gpus: readonly string[];
}

/** README.md of a reproduction: what, expected, actual, how to run it, and where it was seen. */
export function readmeText(
  parameters: ReproParameters,
  { description, machine }: { readonly description: Description; readonly machine: Machine },
): string {
  const { runtime, packages, hypothesis, language, seed } = parameters;
  const { what, run, expected, actual } = description;
  const rows = [
    `| OS | ${cell(machine.system)} |`,
    `| ${runtime.name} | ${cell(runtime.version)} |`,
    ...Object.entries(packages).map(([name, version]) => `| ${cell(name)} | ${cell(version)} |`),
    `| GPU | ${machine.gpus.length === 0 ? 'none' : cell(machine.gpus.join(', '))} |`,
  ];
  const title = hypothesis === null ? 'Reproduction' : `Reproduction of ${hypothesis.id}`;
  return `# ${title}

${what}

**Expected.** ${expected}

**Actual.** ${actual}

## How to run it

\`\`\`sh
${run}
\`\`\`

Nothing has to be installed for it but what it tests. \`parameters.json\` holds what it does it with (\`REPRO_PARAMETERS\` names another such file), the seed
is ${seed} (\`REPRO_SEED\` names another). It ends with 0 when the fault did not happen, 1 when it did, and 125 when it could not tell, so
\`git bisect run ${run}\` works.
${REGRESSION[language]}
## Where it was seen

| what | version |
|---|---|
${rows.join('\n')}
`;
}

const REGRESSION = {
  python:
    '\n`python3 -m pytest` runs `test_regression.py`, which fails while the fault is there.\n',
  node: '\n`npx vitest run` runs `regression.test.mjs`, which fails while the fault is there.\n',
  shell: '',
} as const;

/** One cell of a table. */
function cell(text: string): string {
  return text.replaceAll('|', '\\|').replaceAll('\n', ' ');
}
