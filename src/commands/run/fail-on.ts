import { FINDING_KINDS } from '../../core/catalogue/catalogue.ts';
import type { Finding, FindingKind, Severity } from '../../core/types.ts';
import { isVerdict } from '../../report/verdict.ts';
import { invalidValue } from '../command-line/parse.ts';

/** `--fail-on`: which findings make `trace run` fail where the command itself did not. */

/** Every severity from this one on, or every finding of a kind. */
export type FailOn =
  | { readonly by: 'severity'; readonly severity: Severity }
  | { readonly by: 'kind'; readonly kind: FindingKind };

/** Worst first. */
const SEVERITIES: readonly Severity[] = ['critical', 'warning', 'note'];

/** All that may be named, as completion offers them. */
export const FAIL_ON_WORDS: readonly string[] = [...SEVERITIES.toReversed(), ...FINDING_KINDS];

/** `warning`, `loop-blocked`, `critical,memory-leak`: a list of severities and kinds. Anything else is a usage error. */
export function parseFailOn(texts: readonly string[]): readonly FailOn[] {
  return texts.flatMap((text) => text.split(',')).map((word) => parseOne(word.trim()));
}

function parseOne(word: string): FailOn {
  const severity = SEVERITIES.find((one) => one === word);
  if (severity !== undefined) return { by: 'severity', severity };
  const kind = FINDING_KINDS.find((one) => one === word);
  if (kind !== undefined) return { by: 'kind', kind };
  throw invalidValue('--fail-on', word, 'note, warning, critical or a kind such as loop-blocked');
}

/**
 * Whether one of the findings is meant. A kind and `warning` mean what would make attach exit 1: no notes, nothing inconclusive; `note`
 * means any finding. Where the command itself failed (`hasFailed`), how it and what it started ended is in its exit code: only
 * `process-exit` by name means that then.
 */
export function isRefused(
  findings: readonly Finding[],
  { failOn, hasFailed }: { readonly failOn: readonly FailOn[]; readonly hasFailed: boolean },
): boolean {
  return findings.some((finding) => {
    const isSaid = hasFailed && finding.kind === 'process-exit';
    return failOn.some((rule) => isMeant(finding, rule) && (rule.by === 'kind' || !isSaid));
  });
}

function isMeant(finding: Finding, rule: FailOn): boolean {
  if (rule.by === 'kind') return finding.kind === rule.kind && isVerdict(finding);
  if (rule.severity === 'note') return true;
  const reaches = SEVERITIES.indexOf(finding.severity) <= SEVERITIES.indexOf(rule.severity);
  return reaches && isVerdict(finding);
}
