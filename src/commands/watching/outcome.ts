import { EXIT, type ExitCode } from '../../core/exit-code.ts';
import type { Finding } from '../../core/types.ts';
import { isVerdict } from '../../report/verdict.ts';

/** 1 when there is a verdict, else 0: the same rule for a live run and for a recording. */
export function exitCodeOfFindings(findings: readonly Finding[]): ExitCode {
  return findings.some(isVerdict) ? EXIT.finding : EXIT.ok;
}
