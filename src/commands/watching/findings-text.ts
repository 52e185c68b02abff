import { printable } from '../../core/text.ts';
import type { Finding } from '../../core/types.ts';

const SHOWN = 3;

/** Findings in a line: what was found, the gravest first as they come. */
export function findingsText(findings: readonly Finding[]): string {
  if (findings.length === 0) return 'nothing found';
  const shown = findings
    .slice(0, SHOWN)
    .map(
      ({ id, kind, code, confidence, summary }) =>
        `${id} ${kind} (${code}), ${confidence}: ${printable(summary, 240)}`,
    );
  const rest = findings.length - shown.length;
  return [...shown, ...(rest > 0 ? [`${rest} more`] : [])].join('; ');
}
