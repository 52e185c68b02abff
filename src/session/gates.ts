import { createHash } from 'node:crypto';
import type { Fields, Session, SessionAttempt } from '../core/session.ts';
import { LEAST_HYPOTHESES } from './next-steps.ts';
import { DIAGNOSIS_KEYS } from './shape.ts';

/** The gates of a session: what has to be there before the next step. Each gives what is missing, as sentences; none when it opens. */

/** Failed attempts of one approach after which it is given up. */
export const MOST_STRIKES = 3;

/** Of what an investigation has, before one explanation can be presented as the cause. */
export function missingForDiagnosis(session: Session): readonly string[] {
  const { hypotheses, evidence, eliminated } = session;
  const missing: string[] = [];
  if (session.status === 'gathering') missing.push('symptoms: trace session symptoms --actual …');
  if (hypotheses.length < LEAST_HYPOTHESES)
    missing.push(`${LEAST_HYPOTHESES} hypotheses: there are ${hypotheses.length}`);
  const winner = hypotheses.find(({ state }) => state === 'confirmed');
  if (winner === undefined)
    missing.push('a confirmed hypothesis: trace session hypothesis confirm <id> --evidence …');
  else if (!evidence.some(({ hypothesis }) => hypothesis === winner.id))
    missing.push(
      `evidence for ${winner.id}: trace session evidence add … --hypothesis ${winner.id}`,
    );
  if (eliminated.length === 0 && !hypotheses.some(({ state }) => state === 'eliminated'))
    missing.push('an eliminated rival: trace session hypothesis eliminate <id> --evidence …');
  return missing;
}

/** Before a fix may be approved. `isTddMode`: the project asks for a failing test first. */
export function missingForFix(
  session: Session,
  { isTddMode }: { readonly isTddMode: boolean },
): readonly string[] {
  const { reproduction, tdd } = session;
  const missing: string[] = [];
  if (session.goal === 'find_root_cause_only')
    missing.push('the goal is the root cause alone: begin another session for the fix');
  if (session.status !== 'diagnosed') missing.push('a diagnosis: trace session diagnose …');
  if ((reproduction['seen_failing'] ?? '') === '' && (reproduction['no_repro'] ?? '') === '')
    missing.push(
      'a reproduction seen failing: trace session reproduce -- <command>, or --no-repro REASON',
    );
  if (isTddMode && tdd['status'] !== 'red')
    missing.push(
      'a failing test, as workflow.tdd_mode asks: trace session tdd --file … -- <command>',
    );
  return missing;
}

/** What an approval is of: any change to it makes another. */
export function diagnosisHash(diagnosis: Fields): string {
  const values = DIAGNOSIS_KEYS.map((key) => diagnosis[key] ?? '');
  return createHash('sha256').update(JSON.stringify(values)).digest('hex').slice(0, 16);
}

/** Whether the diagnosis was approved and is still the one that was. */
export function approvalOf({ diagnosis }: Session): 'approved' | 'changed' | 'none' {
  if ((diagnosis['approved_by'] ?? '') === '') return 'none';
  return diagnosis['hash'] === diagnosisHash(diagnosis) ? 'approved' : 'changed';
}

/** Attempts that failed with this hypothesis and this approach. */
export function strikesOf(
  { attempts }: Session,
  { hypothesis, approach }: Pick<SessionAttempt, 'hypothesis' | 'approach'>,
): readonly SessionAttempt[] {
  return attempts.filter(
    (one) => one.outcome === 'failed' && one.hypothesis === hypothesis && one.approach === approach,
  );
}

/** What a failed attempt asks for, by how many there are. */
export function afterStrike(strikes: readonly SessionAttempt[]): readonly string[] {
  const asks = [
    'look again before the next change: what did this one not explain? trace session evidence add …',
    'doubt the hypothesis: what would refute it, and was that looked for? trace session hypothesis …',
    'stop: three changes of this approach failed. Would a fundamentally different approach fit what they taught? (--approach)',
  ];
  const ask = asks[Math.min(strikes.length, MOST_STRIKES) - 1];
  const taught =
    strikes.length < MOST_STRIKES
      ? []
      : strikes.map(({ id, change, after }) => `${id}: ${change}; after it ${after}`);
  return [...taught, ...(ask === undefined ? [] : [ask])];
}
