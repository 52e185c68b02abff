import { writeFileSync } from 'node:fs';
import { cpus } from 'node:os';
import { join } from 'node:path';
import { commit } from '../bench/measurements.ts';
import exceptions from './exceptions.json' with { type: 'json' };
import { resultTable, type Row, summaryOf } from './results.ts';

/** Writes docs/bugbench.md anew from what was measured. */
export function writePage(rows: readonly Row[], watchS: number): void {
  const ids = new Set(rows.map(({ of }) => of.id));
  const excused = exceptions
    .filter(({ id }) => ids.has(id))
    .map(({ id, kinds, reason }) => `- ${id} (${kinds.join(', ')}): ${reason}.`);
  const text = `# The bug bench

Real bugs of released packages, the release that has the bug and the one that mended it, both under \`trace attach\`. Written by
\`npm run bugbench -- --publish\` (test/bugbench).

${new Date().toISOString().slice(0, 10)}, commit ${commit()}; ${cpus().length} cores, Node ${process.versions.node}; n = 1 for each release of ${rows.length} cases, watched for ${watchS} s each.

${summaryOf(rows)}

${resultTable(rows)}

Each release has an environment of its own. The driver brings its own peer on the loopback address, prints its pid, and that process is attached to: Python
without any change to it, Node with \`--inspect\`. What the columns say:

- **found**: a finding of \`warning\` or above that is not inconclusive, of any kind.
- **kind**: one of the kinds that the case accepts.
- **place**: a finding of such a kind names one of the case's words, as a whole token, as a function or in the file below site-packages, node_modules or the
  standard library. The driver's own path, the summary and the evidence do not count.
- **stands after**: seconds of the recording that the detectors needed until they said so, to 2 s.
- **false on fixed**: findings of \`warning\` or above of the release without the bug.
- **driver disagrees**: the driver, which looks from inside, did not see the bug in the release that has it, or saw it in the other.
- **own CPU**: of trace, one core = 100 %, the larger of the two.
${excused.length === 0 ? '' : `\nExcused on the fixed release:\n\n${excused.join('\n')}\n`}`;
  writeFileSync(join(import.meta.dirname, '..', '..', 'docs', 'bugbench.md'), text);
}
