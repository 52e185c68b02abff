import { detectAll } from '../../../src/analysis/detectors.ts';
import { hypothesesOf, type Verdict } from '../../../src/analysis/hypotheses/hypotheses.ts';
import type { FindingKind, Observation, RecordingView } from '../../../src/core/types.ts';
import { memoryRecording } from '../../../src/recording/memory.ts';
import { START } from '../simulated-run.ts';

/** What the detectors find in a simulated run, and the explanations of it. */
export function explain(observations: readonly Observation[], verdicts: readonly Verdict[] = []) {
  const view = viewOf(observations);
  const findings = detectAll(view);
  const hypotheses = hypothesesOf(view, findings, { recording: 'rec', verdicts });
  return { findings, hypotheses, first: hypotheses[0]?.mechanism };
}

export function viewOf(observations: readonly Observation[]): RecordingView {
  const recording = memoryRecording(START);
  for (const one of observations) recording.write(one);
  return recording.view();
}

/**
 * Explanations of what the detectors find in a view: of the gravest finding, or of the first of a
 * kind.
 */
export function explainView(view: RecordingView, kind: FindingKind | null = null) {
  const findings = detectAll(view);
  const finding = kind === null ? null : (findings.find((one) => one.kind === kind)?.id ?? 'none');
  const hypotheses = hypothesesOf(view, findings, { recording: 'rec', finding });
  return { findings, hypotheses, first: hypotheses[0]?.mechanism };
}
