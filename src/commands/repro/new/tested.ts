import { TraceError } from '../../../core/errors.ts';
import { EXIT } from '../../../core/exit-code.ts';
import { printable } from '../../../core/text.ts';
import type { TestedHypothesis } from '../../../../repro/parameters/parameters.ts';
import { parseRecordingAddress } from '../../../recording/format.ts';

/** The hypothesis of `recording#H2`; of a recording alone its first, null where it has none. Rejects with a TraceError. */
export async function testedHypothesis(
  address: string,
  cwd: string,
): Promise<TestedHypothesis | null> {
  const { path, kind, id } = parseRecordingAddress(address);
  const [{ readAnalysed }, { hypothesesOf }] = await Promise.all([
    import('../../recordings/analysed.ts'),
    import('../../../analysis/hypotheses/hypotheses.ts'),
  ]);
  const { view, findings } = await readAnalysed('repro new', [path], cwd);
  const finding = kind === 'finding' ? id : null;
  const all = hypothesesOf(view, findings, { recording: path, finding });
  const found = kind === 'hypothesis' ? all.find((one) => one.id === id) : all[0];
  if (found === undefined && kind === 'hypothesis')
    throw new TraceError('ERR_NO_HYPOTHESIS', `${printable(path)} has no hypothesis ${id ?? ''}`, {
      exitCode: EXIT.notFound,
      remedy: `trace hypotheses ${printable(path)} lists them.`,
    });
  return found === undefined
    ? null
    : { id: found.id, mechanism: found.mechanism, claim: found.claim };
}
