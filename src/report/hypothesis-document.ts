import type { Clue, Hypothesis } from '../core/hypothesis.ts';

/** One of the `hypotheses` of a JSON document (docs/schema/attach.schema.json). */
export function hypothesisDocument(one: Hypothesis): Record<string, unknown> {
  const clues = (some: readonly Clue[]) => some.map(({ summary, weight }) => ({ summary, weight }));
  return {
    id: one.id,
    rank: one.rank,
    mechanism: one.mechanism,
    claim: one.claim,
    predicts: one.predicts,
    test: one.test,
    for: clues(one.for),
    against: clues(one.against),
    score: one.score,
    status: one.status,
    findings: one.findings,
  };
}
